// Owns what is known of a folder of unpacked Debian packages: its loader and libraries, and what of it is of no use.
// Only reads and deletes; changing the executables is relocate.ts.

import type { Dirent } from "node:fs";
import { readdir, realpath, rm } from "node:fs/promises";
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
export const ours = /^(llama|ggml|whisper)/;
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
  for (const entry of await entriesUnder(path.join(root, "ggml"))) {
    if (entry.isFile()) await need(path.relative(prefix.dir, path.join(entry.parentPath, entry.name)), true);
  }
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
export async function namesIn(dir: string): Promise<string[]> {
  try {
    return await readdir(dir);
  } catch {
    return [];
  }
}

export function entriesUnder(dir: string): Promise<Dirent[]> {
  return entriesBelow(dir).catch(() => []);
}
