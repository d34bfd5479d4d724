// The lines of requests that wait to be let in, one per model, and the order in which models that are not loaded get their
// turn. Lets nobody in by itself.
import { GatewayError } from "../core/errors.ts";
import type { Lease } from "./leases.ts";
import type { Ticket, WaitReason } from "./tickets.ts";

export interface Waiter {
  readonly ticket: Ticket;
  resolve(lease: Lease): void;
}

export interface Lines {
  /** Stands in line until it is taken out; one whose client leaves is out at once. Errors: `cancelled`, and as rejected. */
  join(ticket: Ticket, signal: AbortSignal): Promise<Lease>;
  /** In the order in which they came. */
  of(id: string): readonly Waiter[];
  take(id: string): Waiter | undefined;
  /** Refuses those for whom there is an error. */
  reject(id: string, why: (waiter: Waiter) => GatewayError | null): void;
  waitFor(id: string, reason: WaitReason): void;
  /**
   * The model is not loaded: from now on it waits for its load, behind those that do already. So a model that has lost its
   * place goes to the end, however long its requests have waited.
   */
  rank(id: string): void;
  /** Models with a line, in the order in which they are to be loaded. */
  inOrder(): readonly string[];
  /** Since when (ms) the router has not listed it; `now` at the first time. */
  unlistedSince(id: string, now: number): number;
  listed(id: string): void;
}

interface Line {
  waiters: (Waiter & { readonly reject: (error: GatewayError) => void })[];
  rank: number;
  unlistedSince: number | null;
}

/** `onLeave`: a client left its line. */
export function createLines(onLeave: () => void): Lines {
  const lines = new Map<string, Line>();
  let ranks = 0;

  function settle(id: string, leaving: (waiter: Waiter) => boolean): Line["waiters"] {
    const line = lines.get(id);
    if (!line) return [];
    const gone = line.waiters.filter(leaving);
    line.waiters = line.waiters.filter((waiter) => !gone.includes(waiter));
    if (line.waiters.length === 0) lines.delete(id);
    for (const { ticket } of gone) ticket.leave();
    return gone;
  }

  return {
    join: (ticket, signal) => {
      const { id } = ticket;
      const line = lines.get(id) ?? { waiters: [], rank: Number.POSITIVE_INFINITY, unlistedSince: null };
      lines.set(id, line);
      return new Promise((resolve, reject) => {
        const waiter = {
          ticket,
          resolve: (lease: Lease) => {
            signal.removeEventListener("abort", leave);
            resolve(lease);
          },
          reject: (error: GatewayError) => {
            signal.removeEventListener("abort", leave);
            reject(error);
          },
        };
        const leave = (): void => {
          settle(id, (other) => other === waiter);
          reject(new GatewayError("cancelled", "the client left"));
          onLeave();
        };
        // One that has waited for something else before comes in where it would stand without that.
        const behind = line.waiters.findIndex((other) => other.ticket.number > ticket.number);
        line.waiters.splice(behind < 0 ? line.waiters.length : behind, 0, waiter);
        signal.addEventListener("abort", leave, { once: true });
      });
    },
    of: (id) => lines.get(id)?.waiters ?? [],
    take: (id) => {
      const line = lines.get(id);
      if (!line) return undefined;
      line.rank = Number.POSITIVE_INFINITY;
      const [first] = line.waiters;
      return first && settle(id, (waiter) => waiter === first)[0];
    },
    reject: (id, why) => {
      const errors = new Map<Waiter, GatewayError>();
      for (const waiter of lines.get(id)?.waiters ?? []) {
        const error = why(waiter);
        if (error) errors.set(waiter, error);
      }
      for (const waiter of settle(id, (each) => errors.has(each))) {
        const error = errors.get(waiter);
        if (error) waiter.reject(error);
      }
    },
    waitFor: (id, reason) => {
      for (const { ticket } of lines.get(id)?.waiters ?? []) ticket.waitsFor(reason);
    },
    rank: (id) => {
      const line = lines.get(id);
      if (line && line.rank === Number.POSITIVE_INFINITY) line.rank = ++ranks;
    },
    inOrder: () => [...lines].toSorted(([, a], [, b]) => (a.rank === b.rank ? 0 : a.rank - b.rank)).map(([id]) => id),
    unlistedSince: (id, now) => {
      const line = lines.get(id);
      if (!line) return now;
      line.unlistedSince ??= now;
      return line.unlistedSince;
    },
    listed: (id) => {
      const line = lines.get(id);
      if (line) line.unlistedSince = null;
    },
  };
}
