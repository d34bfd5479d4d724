// The book of those who wait for a model: how many, since when, for what, and when there are too many. Lets nobody in.
import { GatewayError } from "../core/errors.ts";

/**
 * `load`: it is being loaded, or another one is; `drain`: a change waits for its answers under way; `room`: every place is
 * taken; `turn`: it is loaded, and has enough to do or others wait for its place; `size`: another context size comes first.
 */
export type WaitReason = "load" | "drain" | "room" | "router" | "workers" | "size" | "turn";

/** One request's place in the book; it keeps its number when it waits again. */
export interface Ticket {
  readonly id: string;
  /** Of all tickets, in the order in which they came. */
  readonly number: number;
  readonly reason: WaitReason;
  /** ms since the epoch, of this reason. */
  readonly reasonSince: number;
  waitsFor(reason: WaitReason): void;
  /** Safe to call twice. */
  leave(): void;
}

export interface Waiting {
  readonly model: string;
  readonly requests: number;
  /** Of the one that has waited longest. */
  readonly oldestMs: number;
  readonly for: WaitReason;
}

export interface WaitingBook {
  /** Errors: `busy` where the model has as many requests as it may, waiting and under way together. */
  enter(id: string, reason: WaitReason): Ticket;
  /** Throws as {@link enter}, for a request that need not wait. */
  requireRoom(id: string): void;
  /** By model and by what they wait for, those who wait longest first. */
  report(): readonly Waiting[];
}

/** Where a line is full somebody's answer is usually through within seconds. */
const retryAfterMs = 5_000;

export function createWaitingBook(options: {
  /** Requests per model, waiting and under way. */
  readonly limit: number;
  readonly inFlight: (id: string) => number;
  readonly now: () => number;
}): WaitingBook {
  const { now } = options;
  const tickets = new Map<string, Set<Ticket & { readonly since: number }>>();
  let count = 0;

  function requireRoom(id: string): void {
    const { limit } = options;
    if ((tickets.get(id)?.size ?? 0) + options.inFlight(id) < limit) return;
    throw new GatewayError("busy", `${limit} requests for ${id} wait or are being answered (--queue-limit)`, {
      retryAfterMs,
    });
  }

  return {
    requireRoom,
    enter: (id, reason) => {
      requireRoom(id);
      const since = now();
      const ticket = {
        id,
        since,
        number: ++count,
        reason,
        reasonSince: since,
        waitsFor: (next: WaitReason) => {
          const own = tickets.get(id) ?? new Set();
          tickets.set(id, own.add(ticket));
          if (ticket.reason !== next) ticket.reasonSince = now();
          ticket.reason = next;
        },
        leave: () => {
          const own = tickets.get(id);
          own?.delete(ticket);
          if (own?.size === 0) tickets.delete(id);
        },
      };
      ticket.waitsFor(reason);
      return ticket;
    },
    report: () => {
      const groups = new Map<string, Waiting>();
      const time = now();
      for (const { id, reason, since } of [...tickets.values()].flatMap((own) => [...own])) {
        const key = `${reason} ${id}`;
        const group = groups.get(key);
        groups.set(key, {
          model: id,
          requests: (group?.requests ?? 0) + 1,
          oldestMs: Math.max(group?.oldestMs ?? 0, time - since),
          for: reason,
        });
      }
      return [...groups.values()].toSorted((a, b) => b.oldestMs - a.oldestMs);
    },
  };
}
