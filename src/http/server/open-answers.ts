// Which answers are under way, so that a stop can wait for them and for nothing else. Knows of no answer what it is.
import { EventEmitter, once } from "node:events";
import type { ServerResponse } from "node:http";

export interface OpenAnswers {
  note(response: ServerResponse): void;
  /** Resolves when none is under way, or the signal aborts. */
  settled(signal: AbortSignal): Promise<void>;
}

export function createOpenAnswers(): OpenAnswers {
  const events = new EventEmitter();
  let open = 0;
  const ended = (): void => {
    if (--open === 0) events.emit("none");
  };
  return {
    note: (response) => {
      open++;
      response.on("close", ended);
    },
    settled: async (signal) => {
      // Rejects when the signal aborts.
      if (open > 0) await once(events, "none", { signal }).catch(() => undefined);
    },
  };
}
