// Owns making unpacked Debian packages run where they lie: their own loader, their own libraries, backends in reach.
// Knows nothing of apt, and changes only files under the prefix.

import { open, rm, symlink } from "node:fs/promises";
import path from "node:path";
import { entriesUnder, namesIn, ours, type Prefix } from "./prefix.ts";
import { type RunOptions, runTool } from "./run.ts";

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
  const existing = await existingFolders(prefix.dir, [prefix.lib, ...folders]);
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
export async function findExecutables(prefix: Prefix): Promise<string[]> {
  const files: string[] = [];
  for (const top of ["usr/bin", "usr/libexec"]) {
    for (const entry of await entriesUnder(path.join(prefix.dir, top))) {
      const file = path.join(entry.parentPath, entry.name);
      if (entry.isFile() && ours.test(entry.name) && (await isElf(file))) files.push(path.relative(prefix.dir, file));
    }
  }
  return files.sort();
}

async function findLibraries(prefix: Prefix): Promise<string[]> {
  const files: string[] = [];
  const root = path.join(prefix.dir, prefix.lib);
  for (const entry of await entriesUnder(root)) {
    const file = path.join(entry.parentPath, entry.name);
    // The loader and libc are what is running patchelf just now; neither has such a path.
    if (!entry.isFile() || !/\.so(\.|$)/.test(entry.name) || /^(ld|libc\.so)/.test(entry.name)) continue;
    if (await isElf(file)) files.push(path.relative(prefix.dir, file));
  }
  return files.sort();
}

async function findBackends(prefix: Prefix): Promise<string[]> {
  const root = path.join(prefix.dir, prefix.lib, "ggml");
  return (await entriesUnder(root))
    .filter((entry) => !entry.isDirectory() && /^libggml-.*\.so$/.test(entry.name))
    .map((entry) => path.relative(prefix.dir, path.join(entry.parentPath, entry.name)))
    .sort();
}

async function existingFolders(dir: string, folders: readonly string[]): Promise<string[]> {
  const existing: string[] = [];
  for (const folder of folders) {
    if ((await namesIn(path.join(dir, folder))).length > 0) existing.push(folder);
  }
  return existing;
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
