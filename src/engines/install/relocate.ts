// Makes unpacked Debian packages run where they lie: their own loader, their own libraries, backends in reach, and nothing
// that the engines do not need. Changes only files under the prefix.
import { lstat, open, readdir, realpath, rm, symlink } from "node:fs/promises";
import path from "node:path";
import { GatewayError } from "../../core/errors.ts";
import { entriesBelow } from "../../state/folder.ts";
import { type RunOptions, runTool } from "./run.ts";

export interface Prefix {
  readonly dir: string;
  /** `usr/lib/<triplet>`, relative to the prefix. */
  readonly lib: string;
  /** The dynamic loader, relative to the prefix. */
  readonly loader: string;
}

/** Our executables, the engines' and their companions; everything else in the bin folders came along as a dependency. */
const ours = /^(llama|ggml|whisper)/;
/** The loader itself, and what libc opens by name while a program runs. */
const openedByLibc = /^(ld[-6]|libnss_|libgcc_s\.|libresolv\.)/;

/** Finds loader and library folder. The triplet is read from the files, so that it is right on every architecture. */
export async function findPrefix(dir: string): Promise<Prefix> {
  for (const triplet of await readdir(path.join(dir, "usr/lib"))) {
    const lib = path.join("usr/lib", triplet);
    const names = await namesIn(path.join(dir, lib));
    const loader = names.find((name) => /^ld(-linux[\w-]*|64)\.so\.\d+$/.test(name));
    // usr/lib64 holds just a link to the loader; the libraries lie beside the real one.
    if (loader !== undefined && names.includes("libc.so.6")) return { dir, lib, loader: path.join(lib, loader) };
  }
  throw new GatewayError("engine_failed", `the unpacked packages hold no dynamic loader under ${dir}/usr/lib`);
}

/** Deletes what running the engines does not need: other programs, documentation, data that is looked for elsewhere. */
export async function prune(prefix: Prefix): Promise<void> {
  const triplet = path.basename(prefix.lib);
  await keepOnly(prefix.dir, (name) => name === "usr");
  await keepOnly(path.join(prefix.dir, "usr"), (name) => ["bin", "lib", "libexec"].includes(name));
  await keepOnly(path.join(prefix.dir, "usr/lib"), (name) => name === triplet);
  await keepOnly(path.join(prefix.dir, "usr/bin"), (name) => ours.test(name) || name === "patchelf");
  // Character set tables and graphics drivers are looked for under the system's own /usr, never here.
  const unused = new Set(["gconv", "dri", "gbm", "perl-base"]);
  await keepOnly(path.join(prefix.dir, prefix.lib), (name) => !unused.has(name));
}

/**
 * Deletes the libraries that no executable and no backend asks for. Debian's SDL brings graphics drivers with a whole
 * compiler, 200 MB that only opening a window would use.
 */
export async function dropUnneeded(prefix: Prefix, executables: readonly string[], run: RunOptions): Promise<void> {
  const root = path.join(prefix.dir, prefix.lib);
  const needed = new Set<string>();
  async function need(file: string, withPaths: boolean): Promise<void> {
    for (const [, target] of await listLibraries(prefix, file, run, withPaths)) {
      needed.add(target).add(await realpath(target));
    }
  }
  for (const file of executables) await need(file, false);
  for (const backend of await findBackends(prefix)) await need(backend, true);
  for (const entry of await readdir(root, { withFileTypes: true })) {
    const file = path.join(root, entry.name);
    if (entry.isDirectory() || needed.has(file) || openedByLibc.test(entry.name)) continue;
    await rm(file);
  }
}

/** Fails unless each library of the executable is found, and found under the prefix. */
export async function checkLibraries(prefix: Prefix, executable: string, run: RunOptions): Promise<void> {
  for (const [line, target] of await listLibraries(prefix, executable, run)) {
    if (!target.startsWith(prefix.dir + path.sep)) {
      throw new GatewayError("engine_failed", `${executable} would take a library from elsewhere: ${line}`);
    }
  }
}

/**
 * Each library and where it would be loaded from, as the loader itself finds it: `[line, absolute path]`.
 * A backend has no paths of its own and needs `withPaths`; for an executable they would hide that its own are wrong.
 */
async function listLibraries(
  prefix: Prefix,
  file: string,
  run: RunOptions,
  withPaths = false,
): Promise<[string, string][]> {
  const args = [...(withPaths ? ["--library-path", prefix.lib] : []), "--list", path.join(prefix.dir, file)];
  const listing = await runTool(path.join(prefix.dir, prefix.loader), args, { ...run, cwd: prefix.dir });
  const libraries: [string, string][] = [];
  for (const line of listing.split("\n")) {
    const target = /=> (.+?)( \(0x[0-9a-f]+\))?$/.exec(line.trim())?.[1];
    if (target !== undefined) libraries.push([line.trim(), path.resolve(prefix.dir, target)]);
  }
  return libraries;
}

async function keepOnly(dir: string, keep: (name: string) => boolean): Promise<void> {
  for (const name of await namesIn(dir)) {
    if (!keep(name)) await rm(path.join(dir, name), { recursive: true, force: true });
  }
}

/** A folder that is not there has no entries: which folders there are depends on the packages. */
function namesIn(dir: string): Promise<string[]> {
  return readdir(dir).catch(() => []);
}

/** Files and links, relative to the prefix and sorted. */
async function filesBelow(prefix: Prefix, folder: string, isWanted: (name: string) => boolean): Promise<string[]> {
  const entries = await entriesBelow(path.join(prefix.dir, folder)).catch(() => []);
  return entries
    .filter((entry) => !entry.isDirectory() && isWanted(entry.name))
    .map((entry) => path.relative(prefix.dir, path.join(entry.parentPath, entry.name)))
    .sort();
}

/** Library folders that Debian's alternatives or a RUNPATH would point to on an installed system. */
const libraryFolders = ["llama", "ggml", "whisper", "blas", "lapack"];

/**
 * Points every executable of ours to the loader under `home` (an absolute path; loaders have no other) and to the
 * libraries relative to itself, and links the compute backends beside it. Gives the executables, relative to the prefix.
 */
export async function relocate(prefix: Prefix, home: string, run: RunOptions): Promise<string[]> {
  const patchelf = (...args: string[]) => runInside(prefix, "usr/bin/patchelf", args, run);
  const executables = await findExecutables(prefix);
  const libraries = await findLibraries(prefix);

  // A library with a RUNPATH of its own ignores the executable's DT_RPATH, and would take the system's libraries.
  const paths = (await patchelf("--print-rpath", ...libraries)).split("\n").slice(0, libraries.length);
  const folders = new Set(libraryFolders.map((name) => path.join(prefix.lib, name)));
  const withPath = libraries.filter((_, index) => paths[index]?.includes("/") === true && !paths[index].includes("$"));
  for (const entry of paths.flatMap((line) => line.split(":"))) {
    if (entry.startsWith("/usr/lib/")) folders.add(entry.slice(1));
  }
  if (withPath.length > 0) await patchelf("--remove-rpath", ...withPath);

  const backends = await findBackends(prefix);
  const existing: string[] = [];
  for (const folder of [prefix.lib, ...folders])
    if ((await namesIn(path.join(prefix.dir, folder))).length > 0) existing.push(folder);
  for (const dir of new Set(executables.map((file) => path.dirname(file)))) {
    const here = executables.filter((file) => path.dirname(file) === dir);
    const rpath = existing.map((folder) => `$ORIGIN/${path.relative(dir, folder)}`).join(":");
    // DT_RPATH and not RUNPATH: it must reach the libraries of the libraries.
    await patchelf("--force-rpath", "--set-rpath", rpath, ...here);
    await patchelf("--set-interpreter", path.join(home, prefix.loader), ...here);
    // Backends are looked for in a folder of the system, beside the executable and in the working folder.
    for (const backend of backends) {
      await symlink(path.relative(dir, backend), path.join(prefix.dir, dir, path.basename(backend)));
    }
  }
  await rm(path.join(prefix.dir, "usr/bin/patchelf"));
  return executables;
}

/** Runs an unpacked program through the unpacked loader (the system's may be too old), in the prefix: a library path cannot hold a colon. */
function runInside(prefix: Prefix, program: string, args: readonly string[], run: RunOptions): Promise<string> {
  const loader = path.join(prefix.dir, prefix.loader);
  const all = ["--library-path", prefix.lib, program, ...args];
  return runTool(loader, all, { ...run, cwd: prefix.dir });
}

/** Ours, relative to the prefix. */
async function findExecutables(prefix: Prefix): Promise<string[]> {
  const tops = await Promise.all(
    ["usr/bin", "usr/libexec"].map((top) => filesBelow(prefix, top, (name) => ours.test(name))),
  );
  return elfFiles(prefix, tops.flat());
}

/** Without the loader and libc, which run patchelf just now and have no such path. */
async function findLibraries(prefix: Prefix): Promise<string[]> {
  const isLibrary = (name: string): boolean => /\.so(\.|$)/.test(name) && !/^(ld|libc\.so)/.test(name);
  return elfFiles(prefix, await filesBelow(prefix, prefix.lib, isLibrary));
}

function findBackends(prefix: Prefix): Promise<string[]> {
  return filesBelow(prefix, path.join(prefix.lib, "ggml"), (name) => /^libggml-.*\.so$/.test(name));
}

/** Links are left out: each file is changed once. */
async function elfFiles(prefix: Prefix, files: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const name of files) {
    const file = path.join(prefix.dir, name);
    if ((await lstat(file)).isFile() && (await isElf(file))) found.push(name);
  }
  return found;
}

async function isElf(file: string): Promise<boolean> {
  const handle = await open(file);
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(4), 0, 4, 0);
    return bytesRead === 4 && buffer.toString("latin1") === "\x7fELF";
  } finally {
    await handle.close();
  }
}
