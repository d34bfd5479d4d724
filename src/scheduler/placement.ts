// Who gets a place among the loaded models, and who gives one up: the rules alone, as README.md here tells them. Pure.

/** From the end of a model's load: others that wait let it have its place for a while, as loading costs time. */
export interface Turn {
  /** ms since the epoch. */
  readonly beganAt: number;
  readonly ms: number;
}

/** A model that takes one of the places. */
export interface Placed {
  readonly id: string;
  /** On its way in: it can be asked to go only once it is there. */
  readonly isLoading: boolean;
  /** Never goes for another. */
  readonly pinned: boolean;
  /** Answers under way. */
  readonly inFlight: number;
  /** Requests that wait for it. */
  readonly waiting: number;
  /** ms since the epoch; 0 for never. */
  readonly lastUsed: number;
  /** Null: nobody knows when it was loaded, so its turn is over. */
  readonly turn: Turn | null;
}

export type Room =
  | { readonly kind: "free" }
  /** Nobody uses this one: it goes. */
  | { readonly kind: "evict"; readonly id: string }
  /** `yields`: takes no new requests, so that it comes to rest; `until`: when to look again, ms since the epoch. */
  | { readonly kind: "wait"; readonly yields: string | null; readonly until: number }
  /** Every place is a pinned model's: none comes free by itself. */
  | { readonly kind: "pinned" };

const shortestTurnMs = 1_000;
const longestTurnMs = 30_000;
/** Within its turn, how long an idle model is kept for a client that asks again at once: a part of the turn, and at most. */
const lingerPart = 1 / 20;
const longestLingerMs = 1_000;

/** A turn lasts as long as the load took: with one place at least half of the time goes into answers. */
export function turnAfter(loadMs: number, now: number): Turn {
  return { beganAt: now, ms: Math.min(longestTurnMs, Math.max(shortestTurnMs, loadMs)) };
}

/** Room for one more model beside these; `yields`: who was told to take no new requests at the last look. */
export function roomFor(placed: readonly Placed[], most: number, yields: string | null, now: number): Room {
  if (placed.length < most) return { kind: "free" };
  if (placed.every(({ pinned }) => pinned)) return { kind: "pinned" };
  const movable = placed.filter(({ pinned, isLoading }) => !pinned && !isLoading);
  const [idle] = movable
    .filter((model) => isUnused(model, yields) && restsUntil(model) <= now)
    .toSorted((a, b) => a.lastUsed - b.lastUsed);
  if (idle) return { kind: "evict", id: idle.id };
  const over = movable.filter((model) => turnEnd(model) <= now);
  const longest = over.toSorted((a, b) => began(a) - began(b) || a.lastUsed - b.lastUsed)[0];
  const told = over.find(({ id }) => id === yields) ?? longest;
  const changes = movable.flatMap((model) => [turnEnd(model), ...(isUnused(model, yields) ? [restsUntil(model)] : [])]);
  const until = Math.min(...changes.filter((at) => at > now), Number.POSITIVE_INFINITY);
  return { kind: "wait", yields: told?.id ?? null, until };
}

/** Whoever waits for the one that yields waits for its next turn. */
function isUnused({ id, inFlight, waiting }: Placed, yields: string | null): boolean {
  return inFlight === 0 && (waiting === 0 || id === yields);
}

function restsUntil(model: Placed): number {
  const { turn, lastUsed } = model;
  if (turn === null) return 0;
  const linger = Math.min(longestLingerMs, turn.ms * lingerPart);
  return Math.min(turnEnd(model), Math.max(lastUsed, turn.beganAt) + linger);
}

function turnEnd({ turn }: Placed): number {
  return turn === null ? 0 : turn.beganAt + turn.ms;
}

function began({ turn }: Placed): number {
  return turn?.beganAt ?? 0;
}
