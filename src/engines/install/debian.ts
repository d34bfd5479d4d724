// The Debian way: Debian's own signed packages, with their loader and libraries, taken apart into one folder that runs where
// it lies. No root. Gives a filled folder; naming it and making it visible is install.ts.
import { createHash } from "node:crypto";
import { copyFile, mkdir, readdir, rm } from "node:fs/promises";
import path from "node:path";
import { GatewayError } from "../../core/errors.ts";
import { entriesBelow } from "../../state/folder.ts";
import { createPrivateApt, debianSuite } from "./apt.ts";
import { type EngineName, engineFacts } from "./catalog.ts";
import type { Binaries, Build, BuildContext } from "./folder.ts";
import { type RunOptions, runTool } from "./run.ts";

/** Asks Debian's package list for the engine. Throws `engine_missing` without a mirror, `engine_failed` with apt's words. */
export async function resolveDebian(name: EngineName, { staging, run, onProgress }: BuildContext): Promise<Build> {
  const { debianPackages } = engineFacts[name];
  const [main] = debianPackages;
  onProgress({ phase: "resolve", done: 0, total: 0, detail: `Debian ${debianSuite}: fetching the package list` });
  const apt = await createPrivateApt(path.join(staging, "apt"), run);
  const packages = [...debianPackages, "patchelf"];
  const files = await apt.resolve(packages);
  const version = files.find((file) => file.package === main)?.version.replace(/^\d+:/, "");
  if (version === undefined)
    throw new GatewayError("engine_failed", `Debian ${debianSuite} on the system's mirror has no ${main}`);
  const total = files.reduce((sum, file) => sum + file.size, 0);
  const detail = `Debian ${debianSuite}: ${main} ${version} and its dependencies, ${files.length} packages`;
  onProgress({ phase: "resolve", done: files.length, total: files.length, detail });

  return {
    version,
    // The tools, ggml and the backends are packages of their own, each with its own updates.
    detail: `debian-${keyOf(files.filter((f) => /llama|ggml|whisper/.test(f.package)).map((f) => f.file))}`,
    async fill(home) {
      const debs = await apt.download(packages, (percent) =>
        onProgress({ phase: "download", done: Math.round((total * percent) / 100), total, detail }),
      );
      const unpacked = path.join(staging, "unpacked");
      for (const [index, deb] of debs.entries()) {
        await runTool("dpkg-deb", ["-x", deb, unpacked], run);
        await rm(deb);
        onProgress({ phase: "unpack", done: index + 1, total: debs.length, detail: path.basename(deb) });
      }
      const folder = path.join(staging, "prefix");
      return { folder, binaries: await assemble(name, unpacked, folder, home, run) };
    },
  };
}

/**
 * Copies the executables to `bin`, with ggml's backends, which they look for beside themselves, and the loader with all that
 * they need to `lib`; points them there. The rest goes: SDL brings graphics drivers of 200 MB, which only a window would use.
 */
async function assemble(name: EngineName, unpacked: string, folder: string, home: string, run: RunOptions) {
  const entries = (await entriesBelow(unpacked)).filter((entry) => entry.isFile());
  const files = entries.map((entry) => path.relative(unpacked, path.join(entry.parentPath, entry.name)));
  const find = (what: string, pattern: RegExp): string => {
    const found = files.find((file) => pattern.test(file));
    if (found === undefined) throw new GatewayError("engine_failed", `Debian's packages hold no ${what}`);
    return found;
  };
  const loader = find("dynamic loader", /^usr\/lib\/[^/]+\/ld(-linux[\w-]*|64)\.so\.\d+$/);
  const unpackedRun = await runnerIn(unpacked, loader, run);

  const programs = Object.entries(engineFacts[name].binaries).map(
    ([binary, names]) => [binary, find(binary, new RegExp(`^usr/(bin|libexec)/(.*/)?(${names.join("|")})$`))] as const,
  );
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

function keyOf(files: readonly string[]): string {
  return createHash("sha256").update(files.toSorted().join("\n")).digest("hex").slice(0, 8);
}
