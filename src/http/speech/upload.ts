// The bytes of an upload as they come: no more of them than allowed, no longer without any than allowed.
import { GatewayError } from "../../core/errors.ts";
import { within } from "../../engines/process/within.ts";

export interface UploadRules {
  /** Bytes. */
  readonly limit: number;
  /** ms that may pass, while the engine waits for bytes, until 16 KiB more have come. */
  readonly stallMs: number;
  /** ms after which it has to be whole while others wait. */
  readonly wholeMs: number;
  othersWait(): boolean;
}

/** A slow line brings that in two seconds. */
const progressBytes = 16 * 1024;

/** Throws `body_too_large`, `upload_stalled`, and what the bytes throw. */
export async function* uploadBytes(bytes: AsyncIterator<Uint8Array>, rules: UploadRules): AsyncGenerator<Uint8Array> {
  const { limit, stallMs, wholeMs } = rules;
  const began = performance.now();
  let length = 0;
  let progress = 0;
  let waitedMs = 0;
  for (;;) {
    const askedAt = performance.now();
    const next = await within(bytes.next(), stallMs - waitedMs);
    if (!next) throw stalled(stallMs);
    if (next.done === true) return;
    length += next.value.length;
    if (length > limit) throw tooLarge(limit);
    if (performance.now() - began > wholeMs && rules.othersWait())
      throw new GatewayError("upload_stalled", `the upload is not whole after ${wholeMs / 1000} s, and others wait`);
    waitedMs += performance.now() - askedAt;
    progress += next.value.length;
    if (progress >= progressBytes) {
      progress = 0;
      waitedMs = 0;
    } else if (waitedMs >= stallMs) throw stalled(stallMs);
    yield next.value;
  }
}

export function tooLarge(limit: number): GatewayError {
  return new GatewayError("body_too_large", `the upload is larger than the ${limit} bytes that --upload-limit allows`);
}

function stalled(ms: number): GatewayError {
  return new GatewayError("upload_stalled", `less than ${progressBytes} bytes of the upload came in ${ms / 1000} s`);
}
