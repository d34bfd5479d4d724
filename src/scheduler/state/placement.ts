// Which model gets a slot, and which one leaves for it: rules 2 to 4 of README.md.

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
}

export type Room =
  | { readonly kind: "free" }
  /** This model is idle: it is unloaded. */
  | { readonly kind: "evict"; readonly id: string }
  /** `yields`: the model that takes no new requests until it is idle; `until`: when the answer may change, ms. */
  | { readonly kind: "wait"; readonly yields: string | null; readonly until: number }
  /** Every slot is a pinned model's: none becomes free by itself. */
  | { readonly kind: "pinned" };

const shortestTurnMs = 1_000;
const longestTurnMs = 30_000;
/** How long a model that is idle within its turn is kept for a client that asks again at once: a part of the turn. */
const lingerPart = 1 / 20;
const longestLingerMs = 1_000;

/** A turn lasts as long as the load took: with one slot at least half of the time goes into answers. */
export function turnAfter(loadMs: number, now: number): Turn {
  return { beganAt: now, ms: Math.min(longestTurnMs, Math.max(shortestTurnMs, loadMs)) };
}

/** A slot for one more model beside these; `yields`: the model that yields already. */
export function roomFor(placed: readonly Placed[], slots: number, yields: string | null, now: number): Room {
  if (placed.length < slots) return { kind: "free" };
  if (placed.every(({ pinned, isLeaving }) => pinned && !isLeaving)) return { kind: "pinned" };
  const staying = placed.filter(({ isLeaving }) => !isLeaving);
  if (staying.length < slots) return { kind: "wait", yields: null, until: Number.POSITIVE_INFINITY };
  const movable = staying.filter(({ pinned }) => !pinned);
  const [idle] = movable
    .filter((model) => isUnused(model, yields) && lingersUntil(model) <= now)
    .toSorted((a, b) => a.lastUsed - b.lastUsed);
  if (idle) return { kind: "evict", id: idle.id };
  const over = movable.filter(({ turn }) => endOf(turn) <= now);
  const longest = over.toSorted((a, b) => a.turn.beganAt - b.turn.beganAt || a.lastUsed - b.lastUsed)[0];
  const next = over.find(({ id }) => id === yields) ?? longest;
  const changes = movable.map((model) => (isUnused(model, yields) ? lingersUntil(model) : endOf(model.turn)));
  const until = Math.min(...changes.filter((at) => at > now), Number.POSITIVE_INFINITY);
  return { kind: "wait", yields: next?.id ?? null, until };
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
