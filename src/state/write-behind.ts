// Writes a state file a while after a change: one write for all changes until then.
import { createSerial } from "../core/serial.ts";

export interface WriteBehind {
  /** What has changed is written within the delay. */
  later(): void;
  /** Writes what is not written yet. */
  close(): Promise<void>;
}

/** `write`: writes all that there is by then; its errors are its own. */
export function createWriteBehind(delayMs: number, write: () => Promise<void>): WriteBehind {
  const serial = createSerial();
  let timer: NodeJS.Timeout | undefined;

  function now(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    return serial(write);
  }

  return {
    later: () => {
      timer ??= setTimeout(() => void now(), delayMs).unref();
    },
    close: () => (timer ? now() : serial(async () => undefined)),
  };
}
