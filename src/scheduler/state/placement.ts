// Which model gets a slot, and which ones leave for it: rules 2 to 4 of README.md. A slot is one of --models-max, and memory.
import type { ByDevice } from "./world.ts";

/** From the end of a model's load: while other models wait it keeps its slot for so long, as a load costs time. */
export interface Turn {
  /** ms since the epoch. */
  readonly beganAt: number;
  readonly ms: number;
}

/** Of a model whose load was not seen: its turn is over. */
export const noTurn: Turn = { beganAt: 0, ms: 0 };

/** A model in a slot. One that is still loading is a load that was given up, as there is one load at a time. */
export interface Placed {
  readonly id: string;
  /** Being unloaded. */
  readonly isLeaving: boolean;
  /** Never leaves for another model. */
  readonly pinned: boolean;
  readonly inFlight: number;
  /** Requests in its queue. */
  readonly waiting: number;
  /** ms since the epoch; 0: never. */
  readonly lastUsed: number;
  readonly turn: Turn;
  readonly takes: ByDevice;
}

/** What is asked for: a place for one more model. */
export interface Wanted {
  /** Model slots. */
  readonly slots: number;
  /** Of the model; empty where it cannot be known. */
  readonly takes: ByDevice;
  /** What all models may take. */
  readonly limits: ByDevice;
  /** A load ran out of memory: it begins again when those that leave are gone. */
  readonly isShort: boolean;
}

export type Room =
  | { readonly kind: "free" }
  /** These models are idle: they are unloaded. */
  | { readonly kind: "evict"; readonly ids: readonly string[] }
  /** `yields`: the model that takes no new requests until it is idle; `until`: when the answer may change, ms. */
  | { readonly kind: "wait"; readonly yields: string | null; readonly until: number }
  /** Every slot is a pinned model's: none becomes free by itself. */
  | { readonly kind: "pinned" }
  /** Memory does not suffice, also without every model that may leave. */
  | { readonly kind: "tooLarge" };

const shortestTurnMs = 1_000;
const longestTurnMs = 30_000;
/** How long a model that is idle within its turn is kept for a client that asks again at once: a part of the turn. */
const lingerPart = 1 / 20;
const longestLingerMs = 1_000;

/** A turn lasts as long as the load took: with one slot at least half of the time goes into answers. */
export function turnAfter(loadMs: number, now: number): Turn {
  return { beganAt: now, ms: Math.min(longestTurnMs, Math.max(shortestTurnMs, loadMs)) };
}

/**
 * Of a process that is ending so many bytes may for a moment be neither its own nor free, as the kernel frees pages in batches (35 MiB seen):
 * for that a load that fitted was refused, and a model unloaded that could stay.
 */
const inPassing = 48 * 2 ** 20;

/** With what may yet become free of those that leave: what does not even fit then is not worth waiting for. */
export function onceGone(wanted: Wanted, placed: readonly Placed[]): Wanted {
  const passing = inPassing * placed.filter(({ isLeaving }) => isLeaving).length;
  return { ...wanted, limits: new Map([...wanted.limits].map(([device, bytes]) => [device, bytes + passing])) };
}

/** Whether it has its place beside these. */
export function fitsBeside({ slots, takes, limits }: Wanted, others: readonly Placed[]): boolean {
  return others.length < slots && hasMemory(takes, limits, others);
}

/** Of a device without a limit nothing is known. */
function hasMemory(takes: ByDevice, limits: ByDevice, others: readonly Placed[]): boolean {
  for (const [device, bytes] of takes) {
    const taken = others.reduce((sum, other) => sum + (other.takes.get(device) ?? 0), bytes);
    if (taken > (limits.get(device) ?? Number.POSITIVE_INFINITY)) return false;
  }
  return true;
}

/** A place for one more model beside these; `yields`: the model that yields already. */
export function roomFor(placed: readonly Placed[], wanted: Wanted, yields: string | null, now: number): Room {
  const staying = placed.filter(({ isLeaving }) => !isLeaving);
  const isCleared = !wanted.isShort || staying.length === placed.length;
  if (fitsBeside(wanted, placed) && isCleared) return { kind: "free" };
  const fixed = staying.filter(({ pinned }) => pinned);
  if (fixed.length >= wanted.slots) return { kind: "pinned" };
  const later = onceGone(wanted, placed);
  if (!fitsBeside(later, fixed)) return { kind: "tooLarge" };
  if (fitsBeside(later, staying)) return { kind: "wait", yields: null, until: Number.POSITIVE_INFINITY };
  const { movable, idle, leaving } = leaversOf(staying, later, yields, now);
  const evicted = leaving.filter((model) => idle.includes(model));
  if (evicted.length > 0) return { kind: "evict", ids: evicted.map(({ id }) => id) };
  const changes = movable.map((model) => (isUnused(model, yields) ? lingersUntil(model) : endOf(model.turn)));
  const until = Math.min(...changes.filter((at) => at > now), Number.POSITIVE_INFINITY);
  return { kind: "wait", yields: leaving[0]?.id ?? null, until };
}

/**
 * The models that are unloaded for one more, in the end: those in use after their responses and turns. Null: it never fits beside
 * the pinned models.
 */
export function evictedFor(placed: readonly Placed[], wanted: Wanted): readonly string[] | null {
  const staying = placed.filter(({ isLeaving }) => !isLeaving);
  const fixed = staying.filter(({ pinned }) => pinned);
  if (!fitsBeside(wanted, fixed)) return null;
  return leaversOf(staying, wanted, null, Number.POSITIVE_INFINITY).leaving.map(({ id }) => id);
}

/** Of the models that stay so far: those that may leave, those of them that are idle, and those that have to leave. */
function leaversOf(staying: readonly Placed[], wanted: Wanted, yields: string | null, now: number) {
  const movable = staying.filter(({ pinned }) => !pinned);
  const idle = idleOf(movable, yields, now);
  const over = movable.filter((model) => !idle.includes(model) && endOf(model.turn) <= now);
  return { movable, idle, leaving: fewestOf([...idle, ...over.toSorted(byTurn(yields))], staying, wanted) };
}

/** Those that may leave at once, the least recently used first. */
export function idleOf(placed: readonly Placed[], yields: string | null, now: number): Placed[] {
  return placed
    .filter(({ isLeaving, pinned }) => !isLeaving && !pinned)
    .filter((model) => isUnused(model, yields) && lingersUntil(model) <= now)
    .toSorted((a, b) => a.lastUsed - b.lastUsed);
}

/** The one that yields already, then those that have had their place longest. */
function byTurn(yields: string | null): (a: Placed, b: Placed) => number {
  return (a, b) =>
    Number(b.id === yields) - Number(a.id === yields) || a.turn.beganAt - b.turn.beganAt || a.lastUsed - b.lastUsed;
}

/** Of these, in their order, as many as have to leave and none more; empty: all of them would not do. */
function fewestOf(candidates: readonly Placed[], staying: readonly Placed[], wanted: Wanted): readonly Placed[] {
  const leaving = new Set<Placed>();
  const isEnough = (): boolean =>
    fitsBeside(
      wanted,
      staying.filter((model) => !leaving.has(model)),
    );
  for (const candidate of candidates) if (!isEnough()) leaving.add(candidate);
  if (!isEnough()) return [];
  // A small model that has left for nothing, as the next one was large enough alone, stays.
  for (const candidate of [...leaving].reverse()) {
    leaving.delete(candidate);
    if (!isEnough()) leaving.add(candidate);
  }
  return candidates.filter((candidate) => leaving.has(candidate));
}

/** Requests for the model that yields wait for its next turn. */
function isUnused({ id, inFlight, waiting }: Placed, yields: string | null): boolean {
  return inFlight === 0 && (waiting === 0 || id === yields);
}

function lingersUntil({ turn, lastUsed }: Placed): number {
  const linger = Math.min(longestLingerMs, turn.ms * lingerPart);
  return Math.min(endOf(turn), Math.max(lastUsed, turn.beganAt) + linger);
}

function endOf({ beganAt, ms }: Turn): number {
  return beganAt + ms;
}
