// One response of the hub into its place in a file, and the retries of a request that broke off.
import type { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { backoffDelay } from "../../core/backoff.ts";
import type { GatewayError } from "../../core/errors.ts";
import { cancelled } from "../../hub/errors.ts";

export interface Receiving {
  readonly body: Readable;
  /** Bytes to leave out at the beginning. */
  readonly skip: number;
  /** The place of the next byte in the file. */
  at(): number;
  /** The end of the bytes to take; asked for every chunk, as another connection may take the rest. */
  until(): number;
  /** `until` is reached and the response goes on: whether to take more of it. */
  more(): boolean;
  /** Bytes were taken, and will be written. */
  taken(bytes: number): void;
  write(position: number, buffers: readonly Buffer[]): Promise<void>;
  /** Network reads are gathered up to this, so that small ones do not each cost a trip to the file system. */
  readonly gatherBytes: number;
}

/**
 * Resolves when everything was written, or the body ended. Rejects with the body's error once what came before it is written,
 * or with that of `write`. Afterwards the body is over or destroyed.
 */
export async function receive({ body, skip, taken, gatherBytes, ...receiving }: Receiving): Promise<void> {
  let skipping = skip;
  let position = receiving.at();
  let gathered: Buffer[] = [];
  let bytes = 0;
  let writing = Promise.resolve();

  /** Writes one after the other; the next bytes are gathered meanwhile. */
  async function flush(): Promise<void> {
    const [buffers, start] = [gathered, position];
    position += bytes;
    gathered = [];
    bytes = 0;
    await writing;
    writing = receiving.write(start, buffers);
    // Its failure is thrown by the next flush, or at the end.
    writing.catch(() => undefined);
  }

  /** False if no more is taken. */
  function take(chunk: Buffer): boolean {
    const skipped = Math.min(skipping, chunk.length);
    skipping -= skipped;
    let rest = chunk.subarray(skipped);
    while (rest.length > 0) {
      const wanted = receiving.until() - receiving.at();
      if (wanted <= 0) {
        if (receiving.more()) continue;
        return false;
      }
      const part = rest.subarray(0, wanted);
      rest = rest.subarray(part.length);
      gathered.push(part);
      bytes += part.length;
      taken(part.length);
    }
    return true;
  }

  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      if (!take(chunk)) break;
      if (bytes >= gatherBytes) await flush();
    }
  } finally {
    if (bytes > 0) await flush();
    await writing;
  }
}

export interface TryOptions {
  /** Failures in a row after which the transfer fails. */
  readonly tries: number;
  /** Milliseconds before the second try; doubled for each further one. */
  readonly retryMs: number;
}

/**
 * After a failure of one connection: resolves when it may be tried again, throws the failure if not.
 * `gained`: bytes that came in so far, over all connections.
 */
export type TryAgain = (error: GatewayError, gained: number, signal: AbortSignal) => Promise<void>;

const longestWaitMs = 15_000;
/** If the hub asks for a longer wait, the pull fails. */
const longestAskedMs = 5 * 60_000;
/** Less than this between two failures is no progress. */
const leastGain = 64 * 1024;

/** Counts only failures in a row, without progress in between. */
export function createTries({ tries, retryMs }: TryOptions): TryAgain {
  let failures = 0;
  let gainedBefore = 0;
  return async (error, gained, signal) => {
    if (error.code !== "hub_unreachable" && error.code !== "hub_rate_limited") throw error;
    if (gained - gainedBefore >= leastGain) failures = 0;
    gainedBefore = gained;
    failures++;
    const asked = error.retryAfterMs ?? 0;
    if (failures >= tries || asked > longestAskedMs) throw error;
    const wait = Math.max(asked, backoffDelay(failures, { firstMs: retryMs, maxMs: longestWaitMs }));
    await delay(wait, undefined, { signal }).catch(() => {
      throw cancelled("a file");
    });
  };
}
