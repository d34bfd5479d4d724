// Debian's unpacked packages, with their loader and libraries, taken apart into one folder that runs where it lies.
import { copyFile, mkdir, readdir } from "node:fs/promises";
import path from "node:path";
import { GatewayError } from "../../core/errors.ts";
import { entriesBelow } from "../../state/folder.ts";
import type { Binaries } from "./build.ts";
import { type EngineName, type EngineTool, engineFacts } from "./catalog.ts";
import { type RunOptions, runTool } from "./run.ts";

/**
 * Copies the executables to `bin`, with ggml's backends, which they look for beside themselves, and the loader with all that
 * they need to `lib`; points them there. The rest goes: SDL brings graphics drivers of 200 MB, which only a window would use.
 */
export async function assemble(name: EngineName, unpacked: string, folder: string, home: string, run: RunOptions) {
  const entries = (await entriesBelow(unpacked)).filter((entry) => entry.isFile());
  const files = entries.map((entry) => path.relative(unpacked, path.join(entry.parentPath, entry.name)));
  const find = (what: string, pattern: RegExp): string => {
    const found = files.find((file) => pattern.test(file));
    if (found === undefined) throw new GatewayError("engine_failed", `Debian's packages hold no ${what}`);
    return found;
  };
  const loader = find("dynamic loader", /^usr\/lib\/[^/]+\/ld(-linux[\w-]*|64)\.so\.\d+$/);
  const unpackedRun = await runnerIn(unpacked, loader, run);

  const { binaries, optional } = engineFacts[name];
  const programs = Object.entries(binaries).flatMap(([binary, names]) => {
    const pattern = new RegExp(`^usr/(bin|libexec)/(.*/)?(${names.join("|")})$`);
    const isAbsent = optional.includes(binary as EngineTool) && !files.some((file) => pattern.test(file));
    return isAbsent ? [] : [[binary, find(binary, pattern)] as const];
  });
  const backends = files.filter((file) => /\/libggml-[^/]*\.so$/.test(file));
  const libraries = new Set([loader]);
  for (const file of [...programs.map(([, program]) => program), ...backends]) {
    const listing = await unpackedRun("--list", file);
    for (const [line, target = ""] of listing.matchAll(/ => (.+?)(?: \(0x[0-9a-f]+\))?$/gm)) {
      const library = path.relative(unpacked, path.resolve(unpacked, target));
      if (library.startsWith(".."))
        throw new GatewayError("engine_failed", `${file} would take a library from elsewhere: ${line}`);
      libraries.add(library);
    }
  }

  const copy = async (part: string, sources: Iterable<string>): Promise<string[]> => {
    await mkdir(path.join(folder, part), { recursive: true });
    const copies = [...sources].map((file) => [file, path.join(folder, part, path.basename(file))] as const);
    for (const [file, target] of copies) await copyFile(path.join(unpacked, file), target);
    return copies.map(([, target]) => target);
  };
  const executables = await copy(
    "bin",
    programs.map(([, program]) => program),
  );
  const others = [...(await copy("bin", backends)), ...(await copy("lib", libraries))];
  const patchelf = (...args: string[]) => unpackedRun(find("patchelf", /^usr\/bin\/patchelf$/), ...args);
  // A library with a RUNPATH of its own ignores the executable's DT_RPATH, and would take the system's libraries.
  await patchelf("--remove-rpath", ...others);
  // DT_RPATH and not RUNPATH: it must reach the libraries of the libraries.
  await patchelf("--force-rpath", "--set-rpath", "$ORIGIN/../lib", ...executables);
  // Loaders have no relative path.
  await patchelf("--set-interpreter", path.join(home, "lib", path.basename(loader)), ...executables);
  return Object.fromEntries(
    programs.map(([binary, program]) => [binary, path.join("bin", path.basename(program))]),
  ) as Binaries;
}

/** Runs a program in the folder through the unpacked loader: the system's may be too old. */
async function runnerIn(unpacked: string, loader: string, run: RunOptions) {
  // Relative, as the path of the folder may have a colon. Debian's alternatives or a RUNPATH would point to the folders below.
  const home = path.dirname(loader);
  const below = (await readdir(path.join(unpacked, home), { withFileTypes: true }))
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => path.join(home, name));
  return (...args: readonly string[]): Promise<string> =>
    runTool(path.join(unpacked, loader), ["--library-path", [home, ...below].join(":"), ...args], {
      ...run,
      cwd: unpacked,
    });
}
