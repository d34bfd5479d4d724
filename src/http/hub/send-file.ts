// Sends a file of the cache, or a part of it, as fast as the client reads it.
import { type FileHandle, open } from "node:fs/promises";
import { basename } from "node:path";
import { pipeline } from "node:stream/promises";
import type { FastifyReply, FastifyRequest } from "fastify";
import { isAbsent } from "../../core/errors.ts";
import { cacheError } from "../../hub/errors.ts";
import { partOf } from "./range.ts";
import type { ServedFile } from "./served.ts";
import { etagOf, fileHeaders } from "./shapes.ts";

/** What a stream holds of its file: larger pieces are no faster on loopback, and many clients read at once. */
const pieceBytes = 256 * 1024;
/** ms between two checks of the license key. */
const keyCheckMs = 1_000;

/** False if the file is gone or is another one by now, and nothing was sent. Errors: `cache_unwritable` if it cannot be opened. */
export async function sendFile(
  file: ServedFile,
  commit: string,
  request: FastifyRequest,
  reply: FastifyReply,
  cutOff: AbortSignal,
): Promise<boolean> {
  const handle = await openServed(file);
  if (!handle) return false;
  const { raw } = reply.hijack();
  const headers = fileHeaders(file, commit);
  const part = partOf(request.headers, { size: file.size, etag: etagOf(file) });
  if (!part) raw.writeHead(416, { "content-range": `bytes */${file.size}` }).end();
  else {
    const { from, to, isWhole } = part;
    const range = isWhole ? {} : { "content-range": `bytes ${from}-${to - 1}/${file.size}` };
    raw.writeHead(isWhole ? 200 : 206, { ...headers, ...range, "content-length": to - from });
    if (request.method !== "HEAD" && to > from) {
      await stream(handle, from, to, request, raw, cutOff);
      return true;
    }
    raw.end();
  }
  await handle.close();
  return true;
}

async function openServed({ place, size }: ServedFile): Promise<FileHandle | null> {
  const handle = await open(place).catch((error: unknown) => {
    if (isAbsent(error)) return null;
    throw cacheError(error, basename(place));
  });
  const found = await handle?.stat();
  if (handle && found?.isFile() && found.size === size) return handle;
  await handle?.close();
  return null;
}

/** A client that leaves, a stop and a revoked key end it; the client sees a response that is too short. */
async function stream(
  handle: FileHandle,
  from: number,
  to: number,
  request: FastifyRequest,
  raw: FastifyReply["raw"],
  cutOff: AbortSignal,
): Promise<void> {
  const refused = new AbortController();
  const timer = setInterval(() => {
    if (!request.isStillAllowed()) refused.abort();
  }, keyCheckMs);
  const source = handle.createReadStream({ start: from, end: to - 1, highWaterMark: pieceBytes });
  try {
    await pipeline(source, raw, { signal: AbortSignal.any([cutOff, refused.signal]) });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).syscall === "read") request.server.logDefect(error);
  } finally {
    clearInterval(timer);
  }
}
