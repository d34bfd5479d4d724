// Which answers are under way, so that a stop can wait for them and for nothing else. Knows of no answer what it is.
import type { ServerResponse } from "node:http";

export interface OpenAnswers {
  note(response: ServerResponse): void;
  count(): number;
  /** Resolves when none is under way, or the signal aborts. */
  settled(signal: AbortSignal): Promise<void>;
}

export function createOpenAnswers(): OpenAnswers {
  let open = 0;
  const waiters = new Set<() => void>();
  return {
    note: (response) => {
      open++;
      response.once("close", () => {
        open--;
        if (open === 0) for (const resolve of waiters) resolve();
      });
    },
    count: () => open,
    settled: (signal) =>
      new Promise((resolve) => {
        if (open === 0 || signal.aborted) return resolve();
        const done = (): void => {
          waiters.delete(done);
          signal.removeEventListener("abort", done);
          resolve();
        };
        waiters.add(done);
        signal.addEventListener("abort", done, { once: true });
      }),
  };
}
