// An upload as it comes: never more of it than is allowed, never longer without a byte than is allowed, and its beginning
// a second time, for an engine that has ended before it was through. Keeps no more of it than that beginning.
import { GatewayError } from "../../core/errors.ts";

export interface UploadSource {
  /** All of it from its beginning; one at a time. Throws `body_too_large`, `upload_stalled`. */
  open(): AsyncGenerator<Uint8Array>;
  /** Whether what has been read so far can be had again. */
  canRepeat(): boolean;
  /** Whether any of it has been asked for. */
  hasBegun(): boolean;
  /** Resolves when the request can be read by others again. */
  close(): Promise<void>;
}

export interface UploadRules {
  /** Bytes. */
  readonly limit: number;
  /** ms that may pass, while somebody waits for bytes, until so many have come. */
  readonly stallMs: number;
  /** ms after which it has to be whole, counted from where it was asked for, while others wait. */
  readonly wholeMs: number;
  othersWait(): boolean;
}

/** A question spoken into a phone is half a megabyte. */
const keptBytes = 1024 * 1024;
/** In each time without a stall; a slow line brings that in two seconds. */
const progressBytes = 16 * 1024;

export function createUploadSource(bytes: AsyncIterator<Uint8Array>, rules: UploadRules): UploadSource {
  const { limit, stallMs } = rules;
  const kept: Uint8Array[] = [];
  /** How many were thrown away before the first kept one. */
  let dropped = 0;
  let length = 0;
  let hasBegun = false;
  let isOver = false;
  let isLost = false;
  let coming: Promise<void> | null = null;
  let patienceMs = stallMs;
  let progress = 0;
  let askedAt = 0;

  async function take(): Promise<void> {
    const began = performance.now();
    let timer: NodeJS.Timeout | undefined;
    const stalled = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => reject(stall(stallMs)), patienceMs);
    });
    try {
      const next = await Promise.race([bytes.next(), stalled]);
      if (next.done === true) isOver = true;
      else note(next.value, performance.now() - began);
    } finally {
      clearTimeout(timer);
    }
  }

  function note(chunk: Uint8Array, tookMs: number): void {
    length += chunk.length;
    if (length > limit) throw tooLarge(limit);
    // No timer for this: it is soon enough when the next bytes come, or do not.
    if (performance.now() - askedAt > rules.wholeMs && rules.othersWait()) throw slow(rules.wholeMs);
    isLost ||= length > keptBytes;
    kept.push(chunk);
    progress += chunk.length;
    patienceMs -= tookMs;
    if (progress < progressBytes && patienceMs > 0) return;
    if (progress < progressBytes) throw stall(stallMs);
    patienceMs = stallMs;
    progress = 0;
  }

  return {
    canRepeat: () => !isLost,
    hasBegun: () => hasBegun,
    close: async () => {
      await bytes.return?.();
    },
    open: async function* () {
      hasBegun = true;
      askedAt = performance.now();
      for (let at = 0; ; at++) {
        while (at - dropped >= kept.length) {
          if (isOver) return;
          // A reader that was given up may still wait for the same bytes.
          coming ??= take().finally(() => {
            coming = null;
          });
          await coming;
        }
        const chunk = kept[at - dropped];
        if (isLost) dropped += kept.splice(0, at - dropped + 1).length;
        if (chunk) yield chunk;
      }
    },
  };
}

export function tooLarge(limit: number): GatewayError {
  return new GatewayError("body_too_large", `the upload is larger than the ${limit} bytes that --upload-limit allows`);
}

function slow(ms: number): GatewayError {
  const message = `the upload was not whole ${ms / 1000} s after its turn had begun, and others wait behind it`;
  return new GatewayError("upload_stalled", message);
}

function stall(ms: number): GatewayError {
  return new GatewayError("upload_stalled", `nothing, or next to nothing, came of the upload for ${ms / 1000} s`);
}
