// The body of one answer into its place in a file: gathered, written while more comes in, and no more taken than that.
// Knows nothing of requests or tries.
import type { Readable } from "node:stream";

export interface Receiving {
  readonly body: Readable;
  /** Bytes to leave out at the beginning. */
  readonly skip: number;
  /** Where in the file the next byte belongs. */
  at(): number;
  /** Up to where bytes are wanted; asked anew for every chunk, as another connection may take the rest. */
  until(): number;
  /** `until` is reached and the answer goes on: whether more of it is wanted. */
  more(): boolean;
  /** Bytes were taken, and will be written. */
  taken(bytes: number): void;
  write(position: number, buffers: readonly Buffer[]): Promise<void>;
  /** Network reads are gathered up to this, so that small ones do not each cost a trip to the file system. */
  readonly gatherBytes: number;
}

/**
 * Resolves when all that is wanted was written, or the body ended. Rejects with the body's error once what came before
 * it is written, or with that of `write`. Afterwards the body is over or destroyed.
 */
export function receive({ body, skip, at, until, more, taken, write, gatherBytes }: Receiving): Promise<void> {
  return new Promise((resolve, reject) => {
    let skipping = skip;
    let waiting: Buffer[] = [];
    let waitingBytes = 0;
    let position = at();
    let writing = false;
    let over = false;
    let failure: { readonly error: unknown } | undefined;

    function flush(): void {
      writing = true;
      const buffers = waiting;
      const start = position;
      position += waitingBytes;
      waiting = [];
      waitingBytes = 0;
      write(start, buffers).then(
        () => {
          writing = false;
          advance();
        },
        (error: unknown) => {
          // Nothing more can be written: what else waits is lost.
          failure = { error };
          body.destroy();
          reject(error);
        },
      );
    }

    function advance(): void {
      if (writing) return;
      if (waitingBytes >= gatherBytes || (over && waitingBytes > 0)) flush();
      else if (over && failure) reject(failure.error);
      else if (over) resolve();
      if (!over && body.isPaused()) body.resume();
    }

    function stop(): void {
      if (over) return;
      over = true;
      body.destroy();
      advance();
    }

    body.on("data", (chunk: Buffer) => {
      if (over) return;
      const skipped = Math.min(skipping, chunk.length);
      skipping -= skipped;
      let rest = skipped === 0 ? chunk : chunk.subarray(skipped);
      while (rest.length > 0) {
        const room = until() - at();
        if (room <= 0) {
          if (more()) continue;
          stop();
          return;
        }
        const part = rest.length <= room ? rest : rest.subarray(0, room);
        rest = rest.subarray(part.length);
        waiting.push(part);
        waitingBytes += part.length;
        taken(part.length);
      }
      if (waitingBytes < gatherBytes) return;
      if (writing) body.pause();
      else flush();
    });
    body.on("end", () => {
      over = true;
      advance();
    });
    body.on("error", (error) => {
      if (over) return;
      over = true;
      failure = { error };
      advance();
    });
    body.on("close", () => {
      if (over) return;
      over = true;
      failure = { error: new Error("the connection was closed") };
      advance();
    });
  });
}
