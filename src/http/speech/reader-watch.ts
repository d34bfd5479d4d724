// Tells when a listener has stopped reading: what is offered to him stays where it is.

export interface ReaderWatch {
  /** The bytes in pieces small enough that a slow reader is seen to read. */
  slices(bytes: Uint8Array): Generator<Uint8Array>;
  /** All has been offered: what is left of it is on its way. */
  last(): void;
  stop(): void;
}

const sliceBytes = 16 * 1024;
const shortestLookMs = 50;

/** `limitMs` is asked at each look. `onStall` is called once. */
export function createReaderWatch(limitMs: () => number, onStall: () => void): ReaderWatch {
  /** When the reader had taken everything before; null while it is for us to go on. */
  let offeredAt: number | null = null;
  const timer = setInterval(
    () => {
      if (offeredAt === null || performance.now() - offeredAt < limitMs()) return;
      clearInterval(timer);
      onStall();
    },
    Math.max(shortestLookMs, limitMs() / 10),
  );
  timer.unref();
  return {
    slices: function* (bytes) {
      for (let at = 0; at < bytes.length; at += sliceBytes) {
        offeredAt = performance.now();
        yield bytes.subarray(at, at + sliceBytes);
      }
      offeredAt = null;
    },
    last: () => {
      offeredAt = performance.now();
    },
    stop: () => clearInterval(timer),
  };
}
