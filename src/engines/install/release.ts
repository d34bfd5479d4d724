// The release way: the official archive for this platform from the project's releases, fetched and unpacked.
import { chmod, mkdir } from "node:fs/promises";
import path from "node:path";
import { GatewayError } from "../../core/errors.ts";
import { createConnections } from "../../hub/http.ts";
import { entriesBelow } from "../../state/folder.ts";
import type { Binaries, Build, BuildContext } from "./build.ts";
import { type EngineBinary, type EngineName, engineFacts } from "./catalog.ts";
import { chooseAsset } from "./release-asset.ts";
import { fetchAsset, fetchListing } from "./release-download.ts";
import { type RunOptions, runTool } from "./run.ts";

/** Asks the listing. Throws `engine_missing` when it cannot be reached or has nothing for this platform. */
export async function resolveRelease(
  name: EngineName,
  { staging, run, onProgress }: BuildContext,
  url: string = engineFacts[name].releases,
): Promise<Build> {
  onProgress({ phase: "resolve", done: 0, total: 0, detail: `asking ${new URL(url).host} for releases` });
  const dispatcher = createConnections(run.environment);
  const asset = chooseAsset(await fetchListing(url, dispatcher, run.signal), process.platform, process.arch);
  if (typeof asset === "string")
    throw new GatewayError("engine_missing", `the ${name} release way is not available for this platform: ${asset}`);
  const detail = `official release ${asset.tag}: ${asset.name}`;
  onProgress({ phase: "resolve", done: 1, total: 1, detail });

  return {
    version: asset.tag,
    detail: "release",
    async fill() {
      const file = path.join(staging, path.basename(asset.name));
      const onBytes = (done: number): void => onProgress({ phase: "download", done, total: asset.size, detail });
      await fetchAsset(asset, file, { dispatcher, signal: run.signal, onBytes });
      onProgress({ phase: "unpack", done: 0, total: 1, detail: asset.name });
      const folder = path.join(staging, "prefix");
      await unpackArchive(file, folder, run);
      const binaries = await findPrograms(name, folder);
      const { main } = engineFacts[name];
      if (binaries[main] === undefined) throw new GatewayError("engine_failed", `${asset.name} holds no ${main}`);
      return { folder, binaries };
    },
  };
}

/** Unpacks with the system's tools: tar everywhere but for zip files on Linux, whose tar does not know them. */
async function unpackArchive(file: string, folder: string, run: RunOptions): Promise<void> {
  await mkdir(folder);
  const isZip = file.endsWith(".zip") && process.platform === "linux";
  if (isZip) await runTool("unzip", ["-q", "-o", file, "-d", folder], run);
  else await runTool("tar", ["-xf", file, "-C", folder], run);
}

/** The first file of each name (`.exe` on Windows), relative to the folder and made executable. */
async function findPrograms(name: EngineName, folder: string): Promise<Binaries> {
  const files = (await entriesBelow(folder)).filter((entry) => entry.isFile());
  const ending = process.platform === "win32" ? ".exe" : "";
  const binaries: Partial<Record<EngineBinary, string>> = {};
  for (const [binary, names] of Object.entries(engineFacts[name].binaries)) {
    const found = files.find((file) => names.some((wanted) => file.name === wanted + ending));
    if (!found) continue;
    const file = path.join(found.parentPath, found.name);
    await chmod(file, 0o755);
    binaries[binary as EngineBinary] = path.relative(folder, file);
  }
  return binaries;
}
