// The release way: the official archive for this platform from the project's releases, checked by its digest before anything
// is unpacked.
import { createHash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { chmod, mkdir } from "node:fs/promises";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import type { Dispatcher } from "undici";
import { GatewayError, reasonOf } from "../../core/errors.ts";
import { createConnections } from "../../hub/http.ts";
import { isFull } from "../../state/atomic-file.ts";
import { entriesBelow } from "../../state/folder.ts";
import { type EngineBinary, type EngineName, engineFacts } from "./catalog.ts";
import type { Binaries, Build, BuildContext } from "./folder.ts";
import { chooseAsset, type ReleaseAsset } from "./release-asset.ts";
import { type RunOptions, runTool, throwIfCancelled } from "./run.ts";

/** A machine without internet access should try the other way soon. */
const listingMs = 8_000;

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

async function fetchListing(url: string, dispatcher: Dispatcher, signal: AbortSignal): Promise<unknown> {
  try {
    const { fetch } = await import("undici");
    const response = await fetch(url, {
      dispatcher,
      headers: { accept: "application/vnd.github+json", "user-agent": "model-gateway" },
      signal: AbortSignal.any([signal, AbortSignal.timeout(listingMs)]),
    });
    if (!response.ok) throw new Error(`it responded ${response.status}`);
    return await response.json();
  } catch (error) {
    throwIfCancelled(signal);
    const message = `the releases on ${new URL(url).host} cannot be listed: ${whyOf(error)}`;
    throw new GatewayError("engine_missing", message, { cause: error });
  }
}

/** Fetches the asset into `file`. Throws `engine_failed` when it cannot be had, `checksum_mismatch` when it is another. */
async function fetchAsset(
  asset: ReleaseAsset,
  file: string,
  options: { readonly dispatcher: Dispatcher; readonly signal: AbortSignal; onBytes(done: number): void },
): Promise<void> {
  const hash = createHash("sha256");
  let done = 0;
  try {
    const { fetch } = await import("undici");
    const response = await fetch(asset.url, { dispatcher: options.dispatcher, signal: options.signal });
    if (!response.ok || response.body === null) throw new Error(`the server responded ${response.status}`);
    const counted = async function* (body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
      for await (const chunk of body) {
        hash.update(chunk);
        done += chunk.length;
        options.onBytes(done);
        yield chunk;
      }
    };
    await pipeline(response.body, counted, createWriteStream(file), { signal: options.signal });
  } catch (error) {
    throwIfCancelled(options.signal);
    if (isFull(error))
      throw new GatewayError("disk_full", `no disk space for ${asset.name} (${asset.size} bytes)`, { cause: error });
    throw new GatewayError("engine_failed", `${asset.name} could not be fetched: ${whyOf(error)}`, { cause: error });
  }
  const digest = hash.digest("hex");
  if (digest !== asset.sha256) {
    const message = `${asset.name} has the SHA-256 ${digest}, the listing announces ${asset.sha256}; nothing was unpacked`;
    throw new GatewayError("checksum_mismatch", message);
  }
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

/** fetch hides what happened in the cause ("fetch failed"): DNS and connection errors name themselves there. */
function whyOf(error: unknown): string {
  return reasonOf(error instanceof Error && error.cause instanceof Error ? error.cause : error);
}
