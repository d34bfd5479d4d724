// The requests' side of the scheduler: a lease at once, or a promise of one.
import { clientLeftError, GatewayError } from "../core/errors.ts";
import type { Instance } from "../engines/llama/instances.ts";
import type { Handlers, Runner } from "./run.ts";
import type { Ticket, WaitReason } from "./state/events.ts";
import { admit } from "./state/queues.ts";

/** An answer in flight: it holds its model's process. */
export interface Lease {
  readonly instance: Instance;
  /** Why its answer is cut: a drain ended before it, and its model with the drain. Null: it is not. */
  overdue(): GatewayError | null;
  /** Safe to call twice. */
  release(): void;
}

/** A request that waits for something else before it waits for its model. */
export interface Entrance {
  readonly ticket: Ticket;
  /** It waits for something else again; it keeps its number. */
  again(): void;
  /** Safe to call twice. */
  leave(): void;
}

interface Waiter {
  grant(lease: Lease): void;
  reject(error: GatewayError): void;
}

export function createRequests(
  { state, send, now, isDeciding, newTicket }: Runner,
  options: {
    readonly instance: (id: string) => Instance | null;
    readonly drainMs: number;
    /** The first answer of a model begins. */
    readonly onUse: (id: string) => void;
    /** The last answer in flight of a model has ended. */
    readonly onIdle: (id: string) => void;
  },
) {
  const waiters = new Map<number, Waiter>();
  const inUse = new Set<string>();
  /** By model: leases of a lower number are cut. A set of leases would be kept alive by V8, see src/core/bag.ts. */
  const cutBelow = new Map<string, number>();
  let given = 0;

  function give(id: string): Lease {
    const instance = options.instance(id);
    if (!instance) throw new GatewayError("internal", `${id} was granted and is not loaded`);
    if (!inUse.has(id)) options.onUse(id);
    inUse.add(id);
    const end = instance.retain();
    const number = given++;
    let isOpen = true;
    return {
      instance,
      overdue: () => (number < (cutBelow.get(id) ?? 0) ? overdueError(id, options.drainMs) : null),
      release: () => {
        if (!isOpen) return;
        isOpen = false;
        end();
        send({ kind: "released", id });
        if (!state.models.get(id)?.inFlight && inUse.delete(id)) options.onIdle(id);
      },
    };
  }

  function take({ number }: Ticket): Waiter | undefined {
    const waiter = waiters.get(number);
    waiters.delete(number);
    return waiter;
  }

  function leave(ticket: Ticket): void {
    if (take(ticket)) send({ kind: "left", ticket });
  }

  /** The fast path: a lease at once; null: the request has to wait, or is rejected, with `acquire`. */
  function tryAcquire(id: string): Lease | null {
    return !isDeciding() && admit(state, id, now()) ? give(id) : null;
  }

  function queued(ticket: Ticket, signal: AbortSignal): Promise<Lease> {
    return new Promise((resolve, reject) => {
      const over = (): void => signal.removeEventListener("abort", left);
      const left = (): void => {
        leave(ticket);
        reject(clientLeftError());
      };
      signal.addEventListener("abort", left);
      waiters.set(ticket.number, {
        grant: (lease) => resolve((over(), lease)),
        reject: (error) => reject((over(), error)),
      });
      send({ kind: "request", ticket });
    });
  }

  const requests = {
    tryAcquire,
    /** A loaded model, kept loaded until the lease is released. Errors: `cancelled`, and every reason of a `reject` effect. */
    acquire: async (id: string, signal: AbortSignal, entrance?: Entrance): Promise<Lease> => {
      if (signal.aborted) throw clientLeftError();
      return (entrance ? null : tryAcquire(id)) ?? queued(entrance?.ticket ?? newTicket(id), signal);
    },
    /** Counts a request that waits for something else. `onReject`, at once or later: `busy`, `shutting_down`. */
    enter: (id: string, reason: WaitReason, onReject: (error: GatewayError) => void): Entrance => {
      const ticket = newTicket(id);
      const wait = (): void => {
        waiters.set(ticket.number, { grant: (lease) => lease.release(), reject: onReject });
        send({ kind: "enter", ticket, reason });
      };
      wait();
      return { ticket, again: wait, leave: () => leave(ticket) };
    },
  };
  const handlers: Pick<Handlers, "grant" | "reject" | "cut"> = {
    grant: ({ ticket }) => {
      const lease = give(ticket.id);
      const waiter = take(ticket);
      if (waiter) waiter.grant(lease);
      // It left while this was decided.
      else lease.release();
    },
    reject: ({ ticket, error }) => take(ticket)?.reject(error),
    cut: ({ id }) => void cutBelow.set(id, given),
  };
  return { requests, handlers };
}

function overdueError(id: string, drainMs: number): GatewayError {
  return new GatewayError(
    "upstream_failed",
    `${id} was reloaded or unloaded for a change: this answer took longer than the ${drainMs / 1000} s of --drain-timeout`,
  );
}
