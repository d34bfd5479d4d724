// The Debian way: Debian's own signed packages, resolved, fetched and unpacked. No root. Gives a filled folder; naming it and
// making it visible is install.ts.
import { createHash } from "node:crypto";
import { rm } from "node:fs/promises";
import path from "node:path";
import { GatewayError } from "../../core/errors.ts";
import { createPrivateApt, debianSuite } from "./apt.ts";
import type { Build, BuildContext } from "./build.ts";
import { type EngineName, engineFacts } from "./catalog.ts";
import { assemble } from "./debian-folder.ts";
import { runTool } from "./run.ts";

/** Asks Debian's package list for the engine. Throws `engine_missing` without a mirror, `engine_failed` with apt's words. */
export async function resolveDebian(name: EngineName, { staging, run, onProgress }: BuildContext): Promise<Build> {
  const { debianPackages, optional } = engineFacts[name];
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

  const packageFiles = files.filter((f) => /llama|ggml|whisper/.test(f.package)).map((f) => f.file);
  return {
    version,
    // The tools, ggml and the backends are packages of their own, each with its own updates. The optional
    // executables count too: an installation without them is another one, and stays for a gateway that runs it.
    detail: `debian-${keyOf([...optional, ...packageFiles])}`,
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

function keyOf(files: readonly string[]): string {
  return createHash("sha256").update(files.toSorted().join("\n")).digest("hex").slice(0, 8);
}
