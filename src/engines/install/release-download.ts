// Requests for an engine's releases: their listing, and an archive, which is checked by its digest.
import { createHash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import type { Dispatcher } from "undici";
import { GatewayError, reasonOf } from "../../core/errors.ts";
import { isFull } from "../../state/atomic-file.ts";
import { fetch } from "../../undici.ts";
import type { ReleaseAsset } from "./release-asset.ts";
import { throwIfCancelled } from "./run.ts";

/** A machine without internet access should try the other way soon. */
const listingMs = 8_000;

/** Throws `engine_missing`. */
export async function fetchListing(url: string, dispatcher: Dispatcher, signal: AbortSignal): Promise<unknown> {
  try {
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
export async function fetchAsset(
  asset: ReleaseAsset,
  file: string,
  options: { readonly dispatcher: Dispatcher; readonly signal: AbortSignal; onBytes(done: number): void },
): Promise<void> {
  const hash = createHash("sha256");
  let done = 0;
  try {
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

/** fetch hides what happened in the cause ("fetch failed"): DNS and connection errors name themselves there. */
function whyOf(error: unknown): string {
  return reasonOf(error instanceof Error && error.cause instanceof Error ? error.cause : error);
}
