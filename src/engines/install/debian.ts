// Owns the Debian way: Debian's own signed packages, with their loader and libraries, unpacked into a folder. No root.
// Gives a filled folder; naming it and making it visible is the front door's work.

import { createHash } from "node:crypto";
import { mkdir, rm } from "node:fs/promises";
import path from "node:path";
import { GatewayError } from "../../core/errors.ts";
import { createPrivateApt, debianSuite } from "./apt.ts";
import { type EngineBinary, type EngineName, engineFacts } from "./catalog.ts";
import type { Build, BuildContext } from "./folder.ts";
import { checkLibraries, dropUnneeded, findPrefix, type Prefix, prune, relocate } from "./relocate.ts";
import { type RunOptions, runTool } from "./run.ts";

/** Asks Debian's package list for the engine. Throws `engine_missing` without a mirror, `engine_failed` with apt's words. */
export async function resolveDebian(name: EngineName, options: BuildContext): Promise<Build> {
  const facts = engineFacts[name];
  const { staging, run, onProgress } = options;
  onProgress({ phase: "resolve", done: 0, total: 0, detail: `Debian ${debianSuite}: fetching the package list` });
  const aptDir = path.join(staging, "apt");
  const apt = await createPrivateApt(aptDir, run);
  const packages = [...facts.debianPackages, "patchelf"];
  const files = await apt.resolve(packages);
  const version = files.find((file) => file.package === facts.debianMain)?.version.replace(/^\d+:/, "");
  if (version === undefined) {
    throw new GatewayError("engine_failed", `Debian ${debianSuite} on the system's mirror has no ${facts.debianMain}`);
  }
  const total = files.reduce((sum, file) => sum + file.size, 0);
  const chosen = `Debian ${debianSuite}: ${facts.debianMain} ${version} and its dependencies, ${files.length} packages`;
  onProgress({ phase: "resolve", done: files.length, total: files.length, detail: chosen });

  return {
    version,
    // The tools, ggml and the backends are packages of their own, each with its own updates.
    detail: `debian-${keyOf(files.filter((f) => /llama|ggml|whisper/.test(f.package)).map((f) => f.file))}`,
    async fill(home) {
      const debs = await apt.download(packages, (percent) => {
        onProgress({ phase: "download", done: Math.round((total * percent) / 100), total, detail: chosen });
      });
      const folder = path.join(staging, "prefix");
      await unpackAll(debs, folder, options);
      await rm(aptDir, { recursive: true });
      onProgress({ phase: "check", done: 0, total: 0, detail: "pointing the executables to their libraries" });
      const prefix = await findPrefix(folder);
      await prune(prefix);
      const executables = await relocate(prefix, home, run);
      await dropUnneeded(prefix, executables, run);
      const binaries = await chooseBinaries(name, prefix, executables, run);
      return { folder, binaries };
    },
  };
}

async function unpackAll(debs: readonly string[], folder: string, { run, onProgress }: BuildContext): Promise<void> {
  await mkdir(folder);
  for (const [index, deb] of debs.entries()) {
    await runTool("dpkg-deb", ["-x", deb, folder], run);
    await rm(deb);
    onProgress({ phase: "unpack", done: index + 1, total: debs.length, detail: path.basename(deb) });
  }
}

async function chooseBinaries(
  name: EngineName,
  prefix: Prefix,
  executables: readonly string[],
  run: RunOptions,
): Promise<Partial<Record<EngineBinary, string>>> {
  const binaries: Partial<Record<EngineBinary, string>> = {};
  for (const [binary, names] of Object.entries(engineFacts[name].binaries)) {
    const file = executables.find((executable) => names.includes(path.basename(executable)));
    if (file === undefined) throw new GatewayError("engine_failed", `Debian's packages hold no ${binary}`);
    await checkLibraries(prefix, file, run);
    binaries[binary as EngineBinary] = file;
  }
  return binaries;
}

function keyOf(files: readonly string[]): string {
  return createHash("sha256")
    .update([...files].sort().join("\n"))
    .digest("hex")
    .slice(0, 8);
}
