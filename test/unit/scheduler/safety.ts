// The safety properties of the scheduler: what must hold at every effect, whatever has happened.
import assert from "node:assert/strict";
import type { State } from "../../../src/scheduler/state/state.ts";
import type { Change, Client, Process } from "./machine-parts.ts";
import type { SimulatedMemory } from "./simulated-memory.ts";

/** What is judged: the state beside what has really happened. */
interface Watched {
  readonly time: number;
  readonly state: State;
  readonly slots: number;
  readonly memory: SimulatedMemory;
  readonly active: ReadonlySet<Client>;
  readonly loaded: ReadonlyMap<string, unknown>;
  readonly processes: ReadonlyMap<string, Process>;
  readonly pinned: ReadonlySet<string>;
  readonly requested: ReadonlySet<string>;
  readonly changes: ReadonlyMap<number, Change>;
}

export function requireSafeGrant(machine: Watched, { ticket: { id, number }, state }: Client): void {
  assert.equal(state, "waits", "a client that left costs nothing: only a request that waits is granted");
  assert.ok(machine.loaded.has(id), "grants only to models that are loaded");
  assert.ok(machine.processes.get(id)?.hasGivenToken ?? true, "no request for a process that has given no token");
  for (const { models } of machine.changes.values()) assert.ok(!covers(models, id), "a draining model admits nobody");
  for (const other of machine.active)
    if (other.ticket.id === id && other.state === "waits" && other.ticket.queuedAt < machine.time)
      assert.ok(other.ticket.number >= number, "first come, first served");
}

export function requireSafeLoad(machine: Watched, id: string): void {
  const isAsked = [...machine.active].some(({ ticket, state }) => ticket.id === id && state === "waits");
  assert.ok(isAsked, "a client that left costs nothing: no load without a request that waits");
  const own = [...machine.processes].filter(([other, { isForeign = false }]) => other !== id && !isForeign);
  const others = own.map(([other]) => other);
  assert.ok(others.length < machine.slots, "no two models in one slot");
  assert.ok(
    !machine.memory.needs.has(id) || machine.memory.needs.get(id) !== undefined,
    "no load before its need is known",
  );
  assert.ok(machine.memory.fits(id, others), "no load beside models that take its memory");
  for (const { models } of machine.changes.values()) assert.ok(!covers(models, id), "no load of a draining model");
}

export function requireSafeUnload(machine: Watched, id: string): void {
  const { requested, state, pinned, active, slots, memory } = machine;
  const cause = state.models.get(id)?.unload?.cause;
  // What a load that was given up takes counts twice until it is gone.
  const isSettled = [...machine.processes.values()].every(({ value }) => value === "loaded");
  if (typeof cause === "object" && isSettled && !state.models.get(cause.slotFor)?.isShort) {
    const isStaying = (other: string): boolean => other === id || !state.models.get(other)?.unload;
    // As the list was read last: a process may have ended since.
    const placed = [...state.world.listed].flatMap(([other, value]) => (value === "unloaded" ? [] : [other]));
    const staying = placed.filter((other) => other !== cause.slotFor && isStaying(other));
    const fits = staying.length < slots && memory.fits(cause.slotFor, staying);
    assert.ok(!fits, "as many leave for a model as have to and none more: two that fit are never swapped");
  }
  const isRefused = state.models.get(id)?.firstToken?.state === "refused";
  const isRequested = requested.has(id) || state.load?.id === id || isRefused;
  assert.ok(!pinned.has(id) || isRequested, "a pinned model never leaves for another, nor for lack of use");
  const isUsed = [...active].some((client) => client.ticket.id === id && client.state === "answers");
  assert.ok(!isUsed || isRequested, "no model is unloaded that answers");
}

/** By the time at which the models began to wait. `passed`: those that wait while another one is loaded. */
export function requireBoundedWait({ state }: Pick<Watched, "state">, id: string, passed: readonly string[]): void {
  const priority = (each: string): number => state.world.rules.get(each)?.priority ?? 0;
  const since = (each: string): number => state.slotOrder.get(each) ?? Number.POSITIVE_INFINITY;
  const levelMs = state.limits.loadTimeoutMs / 40;
  for (const other of passed) {
    const ahead = priority(id) - priority(other);
    if (ahead < 0) continue;
    const late = since(id) - since(other);
    assert.ok(late <= ahead * levelMs, `${id} came ${late} ms after ${other} and is ${ahead} levels above it`);
  }
}

export function requireLimits({ active, state }: Watched): void {
  const counts = new Map<string, number>();
  for (const { ticket } of active) counts.set(ticket.id, (counts.get(ticket.id) ?? 0) + 1);
  for (const [id, count] of counts)
    assert.ok(
      count <= (state.world.rules.get(id)?.queueLimit ?? state.limits.queueLimit),
      `queue limits hold: ${count} for ${id}`,
    );
}

export function covers(models: readonly string[] | "all", id: string): boolean {
  return models === "all" || models.includes(id);
}
