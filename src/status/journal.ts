// What happened, as events with numbers: for /api/events and for whoever waits. Keeps the last few, forgets the rest.

export interface JournalEvent {
  /** From 1, without gaps. */
  readonly id: number;
  /** ISO 8601. */
  readonly at: string;
  /** `condition`, `action.started`, `action.progress`, `action.finished`, `action.failed`, `document`, `source`, `model`, `drain`, `preset`. */
  readonly type: string;
  readonly data: object;
}

export interface Journal {
  record(type: string, data: object): void;
  /** Events after this number, as far as they are still kept. */
  since(id: number): readonly JournalEvent[];
  lastId(): number;
  /** Calls back at each event; call the result to stop. */
  follow(listener: (event: JournalEvent) => void): () => void;
}

const kept = 1000;

export function createJournal(now: () => number): Journal {
  const events: JournalEvent[] = [];
  const listeners = new Set<(event: JournalEvent) => void>();
  let last = 0;
  return {
    record: (type, data) => {
      const event = { id: ++last, at: new Date(now()).toISOString(), type, data };
      events.push(event);
      if (events.length > kept) events.shift();
      for (const listener of listeners) listener(event);
    },
    since: (id) => events.filter((event) => event.id > id),
    lastId: () => last,
    follow: (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}
