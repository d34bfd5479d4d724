// Where the tests of the scheduler's rules begin, and what they look at.
import assert from "node:assert/strict";
import { waiting } from "../../../src/scheduler/state/tickets.ts";
import type { Limits } from "../../../src/scheduler/state/world.ts";
import type { Client } from "./machine-parts.ts";
import { Machine } from "./simulated-machine.ts";

/** ms; longer than anything that is waited for. */
export const long = 50_000;

/** `a` is loaded and idle, its turn is over. */
export function loaded(limits: Partial<Limits> = {}): Machine {
  const machine = new Machine(["a", "b", "c"], limits);
  machine.isDoubled = true;
  machine.ask("a", 1);
  machine.run(10_000);
  assert.deepEqual([...machine.processes.keys()], ["a"]);
  return machine;
}

export function states(clients: readonly Client[]): string {
  return clients.map(({ state }) => state).join(" ");
}

/** What requests wait for: model, count, reason. */
export function reasons({ state, time }: Machine): (string | number)[][] {
  return waiting(state, time).map((entry) => [entry.model, entry.requests, entry.for]);
}
