// Runs the scheduler's state: events in, one after the other; effects out, each to its handler; and the one timer. Decides nothing.
import { longestTimerMs } from "../core/steady.ts";
import { decide } from "./state/decide.ts";
import type { Effect, Event, Ticket } from "./state/events.ts";
import { State } from "./state/state.ts";
import type { Limits, World } from "./state/world.ts";

/** What carries out an effect, by kind. What it brings about comes back as an event. */
export type Handlers = { readonly [K in Effect["kind"]]: (effect: Extract<Effect, { kind: K }>) => void };

type Timeless<E> = E extends unknown ? Omit<E, "now"> : never;

/** An event without its time; the world is read when `observed` is decided. */
export type NewEvent = Exclude<Timeless<Event>, { kind: "observed" }> | { readonly kind: "observed" };

export interface Runner {
  readonly state: State;
  send(event: NewEvent): void;
  /** An event is being decided. */
  isDeciding(): boolean;
  now(): number;
  newTicket(id: string): Ticket;
}

export function createRunner(options: {
  readonly limits: Limits;
  readonly world: () => World;
  readonly handlers: () => Handlers;
  readonly now: () => number;
}): Runner {
  const { now } = options;
  const state = new State(options.limits);
  const events: NewEvent[] = [];
  let isDeciding = false;
  let tickets = 0;
  let timer: NodeJS.Timeout | undefined;
  let timerAt = Number.POSITIVE_INFINITY;

  /** An effect may bring about the next event at once: that one is decided when all effects of this one are carried out. */
  function send(event: NewEvent): void {
    events.push(event);
    if (isDeciding) return;
    isDeciding = true;
    try {
      for (let next = events.shift(); next; next = events.shift()) {
        // The event's own object: a copy for each answer that ends would be garbage.
        const world = next.kind === "observed" ? { world: options.world() } : {};
        const decided = Object.assign(next, world, { now: now() }) as Event;
        for (const effect of decide(state, decided)) options.handlers()[effect.kind](effect as never);
      }
    } finally {
      isDeciding = false;
    }
    setTimer();
  }

  function setTimer(): void {
    if (state.wakeAt >= timerAt) return;
    clearTimeout(timer);
    timerAt = state.wakeAt;
    timer = setTimeout(tick, Math.min(Math.max(1, timerAt - now()), longestTimerMs)).unref();
  }

  function tick(): void {
    timerAt = Number.POSITIVE_INFINITY;
    send({ kind: "tick" });
  }

  return {
    state,
    send,
    now,
    isDeciding: () => isDeciding,
    newTicket: (id) => ({ number: ++tickets, id, since: now(), queuedAt: now() }),
  };
}
