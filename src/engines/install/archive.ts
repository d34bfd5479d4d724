// Owns fetching one archive and unpacking it: bytes to a file while hashing, then the system's tar or unzip.
// Nothing is unpacked before its digest is right.

import { createHash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { chmod, mkdir } from "node:fs/promises";
import path from "node:path";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { type Dispatcher, fetch } from "undici";
import { GatewayError, systemCode } from "../../core/errors.ts";
import { entriesBelow } from "../../state/folder.ts";
import { findOnPath } from "./locate.ts";
import type { ReleaseAsset } from "./release-asset.ts";
import { type RunOptions, runTool, throwIfCancelled } from "./run.ts";

interface FetchOptions {
  readonly dispatcher: Dispatcher;
  readonly signal: AbortSignal;
  onBytes(done: number): void;
}

/** Fetches the asset into `file`. Throws `engine_failed` when it cannot be had, `checksum_mismatch` when it is another. */
export async function fetchAsset(asset: ReleaseAsset, file: string, options: FetchOptions): Promise<void> {
  const hash = createHash("sha256");
  let done = 0;
  try {
    const response = await fetch(asset.url, { dispatcher: options.dispatcher, signal: options.signal });
    if (!response.ok || response.body === null) throw new Error(`the server responded ${response.status}`);
    const meter = new Transform({
      transform(chunk: Buffer, _encoding, next) {
        hash.update(chunk);
        done += chunk.length;
        options.onBytes(done);
        next(null, chunk);
      },
    });
    await pipeline(response.body, meter, createWriteStream(file), { signal: options.signal });
  } catch (error) {
    throwIfCancelled(options.signal);
    if (systemCode(error) === "ENOSPC") {
      throw new GatewayError("disk_full", `no disk space for ${asset.name} (${asset.size} bytes)`, { cause: error });
    }
    throw new GatewayError("engine_failed", `${asset.name} could not be fetched: ${reasonOf(error)}`, { cause: error });
  }
  const digest = hash.digest("hex");
  if (digest !== asset.sha256) {
    const message = `${asset.name} has the SHA-256 ${digest}, the listing announces ${asset.sha256}; nothing was unpacked`;
    throw new GatewayError("checksum_mismatch", message);
  }
}

/** Unpacks with the system's tools: tar everywhere but for zip files on Linux, whose tar does not know them. */
export async function unpackArchive(file: string, folder: string, run: RunOptions): Promise<void> {
  await mkdir(folder);
  if (file.endsWith(".zip") && process.platform === "linux") {
    if ((await findOnPath("unzip", run.environment["PATH"] ?? "")) === null) {
      throw new GatewayError("engine_failed", "unzip is needed for this archive: sudo apt-get install unzip");
    }
    await runTool("unzip", ["-q", "-o", file, "-d", folder], run);
    return;
  }
  await runTool("tar", ["-xf", file, "-C", folder], run);
}

/** The first file of one of these names (`.exe` on Windows), relative to the folder and made executable; or null. */
export async function findProgram(folder: string, names: readonly string[]): Promise<string | null> {
  const entries = await entriesBelow(folder);
  for (const name of names) {
    const wanted = process.platform === "win32" ? `${name}.exe` : name;
    const entry = entries.find((candidate) => candidate.name === wanted && candidate.isFile());
    if (entry === undefined) continue;
    const file = path.join(entry.parentPath, entry.name);
    await chmod(file, 0o755);
    return path.relative(folder, file);
  }
  return null;
}

/** fetch hides what happened in the cause ("fetch failed"): DNS and connection errors name themselves there. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause;
  if (cause instanceof Error) return systemCode(cause) ?? cause.message;
  return error.name === "TimeoutError" ? "no response in time" : error.message;
}
