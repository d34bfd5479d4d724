// Answers that are kept for a moment: who asks the same within it gets the same, also while the first is still on its way.
// What is on its way ends when nobody waits for it any more.
import { GatewayError } from "../../core/errors.ts";

interface Entry<T> {
  readonly answer: Promise<T>;
  /** ms */
  readonly until: number;
  readonly abort: AbortController;
  askers: number;
}

export type Remembered<T> = (key: string, ask: (signal: AbortSignal) => Promise<T>, asker: AbortSignal) => Promise<T>;

/** `asker` is aborted when who asked has left. A failure is not kept. The oldest answers go first. */
export function rememberAnswers<T>(options: {
  readonly forMs: number;
  readonly atMost: number;
  readonly now: () => number;
}): Remembered<T> {
  const entries = new Map<string, Entry<T>>();

  function begin(key: string, ask: (signal: AbortSignal) => Promise<T>): Entry<T> {
    const abort = new AbortController();
    const entry = { answer: ask(abort.signal), until: options.now() + options.forMs, abort, askers: 0 };
    entries.set(key, entry);
    entry.answer.catch(() => forget(key, entry));
    return entry;
  }

  function forget(key: string, entry: Entry<T>): void {
    if (entries.get(key) === entry) entries.delete(key);
  }

  return async (key, ask, asker) => {
    const now = options.now();
    for (const [old, { until }] of entries) {
      // In the order in which they were asked for, so in that of their ends.
      if (until > now && entries.size < options.atMost) break;
      entries.delete(old);
    }
    const entry = entries.get(key) ?? begin(key, ask);
    const leave = (): void => {
      entry.askers--;
      if (entry.askers > 0) return;
      // At once: who asks next must not wait for what is being broken off.
      forget(key, entry);
      entry.abort.abort(new GatewayError("cancelled", "nobody waits for it any more"));
    };
    entry.askers++;
    asker.addEventListener("abort", leave, { once: true });
    if (asker.aborted) leave();
    try {
      return await entry.answer;
    } finally {
      asker.removeEventListener("abort", leave);
    }
  };
}
