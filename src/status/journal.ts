// The latest events, numbered, for the readers of /api/events.

export interface JournalEvent {
  /** `EPOCH-N`: the epoch is another one in each run of the gateway, N counts up from 1. */
  readonly id: string;
  /** ISO 8601. */
  readonly at: string;
  /** `condition`, `action.started`, `action.progress`, `action.finished`, `action.failed`, `document`, `source`, `model`, `drain`, `preset`, `requests`, `reset`. */
  readonly type: string;
  readonly data: object;
}

export type Journal = ReturnType<typeof createJournal>;

const mostKept = 1000;

export function createJournal(now: () => number, epoch: string) {
  /** The oldest first; by what each is the latest of, else by its number. */
  const kept = new Map<string | number, { readonly number: number; readonly event: JournalEvent }>();
  const listeners = new Set<(event: JournalEvent) => void>();
  let last = 0;
  /** The newest event that was dropped for want of space; 0: none. */
  let dropped = 0;

  function eventOf(number: number, type: string, data: object): JournalEvent {
    return { id: `${epoch}-${number}`, at: new Date(now()).toISOString(), type, data };
  }

  /** null: an id of another run. */
  function numberOf(id: string): number | null {
    if (id === "0") return 0;
    const digits = id.startsWith(`${epoch}-`) ? id.slice(epoch.length + 1) : "";
    return /^\d{1,15}$/.test(digits) && Number(digits) <= last ? Number(digits) : null;
  }

  return {
    /** Of the events with one `latestOf` only the newest is kept: the progress of one long pull would leave nothing else. */
    record: (type: string, data: object, latestOf?: string): void => {
      const number = ++last;
      const event = eventOf(number, type, data);
      const key = latestOf ?? number;
      kept.delete(key);
      kept.set(key, { number, event });
      const [oldest] = kept;
      if (kept.size > mostKept && oldest) {
        kept.delete(oldest[0]);
        dropped = oldest[1].number;
      }
      for (const listener of listeners) listener(event);
    },
    /** The kept events after this id, `0`: from the start. `reset` comes first where some are lost, or the id is another run's. */
    since: (id: string): readonly JournalEvent[] => {
      const number = numberOf(id);
      const isWhole = number !== null && number >= dropped;
      const after = isWhole ? number : dropped;
      const events = [...kept.values()].filter((entry) => entry.number > after).map(({ event }) => event);
      // Its id stands before the first event that follows: a client that comes back with it misses none.
      return isWhole ? events : [eventOf(dropped, "reset", {}), ...events];
    },
    lastId: () => `${epoch}-${last}`,
    /** Calls back at each event; call the result to stop. */
    follow: (listener: (event: JournalEvent) => void) => {
      listeners.add(listener);
      return (): void => void listeners.delete(listener);
    },
  };
}
