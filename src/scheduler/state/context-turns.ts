// Context sizes of a model take turns, in the order in which they were first asked for. A turn's change is made once, for all
// its requests; the next turn begins when each of them has its lease or has left.

interface Turn {
  readonly model: string;
  readonly size: number;
  /** Requests, and how many of the turn's changes each has seen. */
  readonly requests: Map<number, { isWaiting: boolean; seen: number }>;
  /** Changes begun. */
  changes: number;
  isChanging: boolean;
  isInForce: boolean;
}

export interface ContextTurns {
  /** By model; the first turn is the current one. */
  readonly turns: Map<string, Turn[]>;
}

export type ContextEvent =
  | { readonly kind: "join"; readonly request: number; readonly model: string; readonly size: number }
  | { readonly kind: "changed"; readonly turn: Turn; readonly error: unknown }
  /** The size that the request found in force is another one: a change came in between. */
  | { readonly kind: "undone"; readonly request: number }
  | { readonly kind: "leave"; readonly request: number };

export type ContextEffect =
  | { readonly kind: "change"; readonly turn: Turn; readonly isRepeated: boolean }
  /** No request waits for the change any more. */
  | { readonly kind: "cancel"; readonly turn: Turn }
  | { readonly kind: "ready"; readonly request: number }
  | { readonly kind: "refuse"; readonly request: number; readonly error: unknown };

export function createContextTurns(): ContextTurns {
  return { turns: new Map() };
}

export function decideContext(state: ContextTurns, event: ContextEvent): readonly ContextEffect[] {
  switch (event.kind) {
    case "join":
      return join(state, event.request, event.model, event.size);
    case "changed":
      return changed(event.turn, event.error);
    case "undone":
      return undone(state, event.request);
    case "leave":
      return leave(state, event.request);
  }
}

function join({ turns }: ContextTurns, request: number, model: string, size: number): ContextEffect[] {
  const queue = turns.get(model) ?? [];
  turns.set(model, queue);
  // A turn whose size is in force takes no more requests while others wait: one busy client would keep them waiting for ever.
  const open = queue.find((turn) => turn.size === size && (!turn.isInForce || queue.length === 1));
  const turn = open ?? { model, size, requests: new Map(), changes: 0, isChanging: false, isInForce: false };
  if (!open) queue.push(turn);
  turn.requests.set(request, { isWaiting: true, seen: 0 });
  return queue[0] === turn ? proceed(turn) : [];
}

/** Makes the change of the current turn, or passes its requests on. */
function proceed(turn: Turn): ContextEffect[] {
  if (turn.isChanging) return [];
  const waiting = [...turn.requests].filter(([, { isWaiting }]) => isWaiting);
  if (waiting.length === 0) return [];
  if (!turn.isInForce || waiting.some(([, { seen }]) => seen === turn.changes)) return [change(turn)];
  return waiting.map(([request, entry]) => {
    Object.assign(entry, { isWaiting: false, seen: turn.changes });
    return { kind: "ready", request };
  });
}

function change(turn: Turn): ContextEffect {
  const isRepeated = turn.isInForce;
  turn.changes++;
  turn.isChanging = true;
  return { kind: "change", turn, isRepeated };
}

/** A failed change is the failure of all who wait for it; the next request tries again. */
function changed(turn: Turn, error: unknown): ContextEffect[] {
  turn.isChanging = false;
  if (error === null) {
    turn.isInForce = true;
    return proceed(turn);
  }
  return [...turn.requests].flatMap(([request, entry]) => {
    if (!entry.isWaiting) return [];
    entry.isWaiting = false;
    return [{ kind: "refuse", request, error }] as const;
  });
}

function undone(state: ContextTurns, request: number): ContextEffect[] {
  const turn = turnOf(state, request);
  const entry = turn?.requests.get(request);
  if (!turn || !entry) return [];
  entry.isWaiting = true;
  return proceed(turn);
}

function leave(state: ContextTurns, request: number): ContextEffect[] {
  const turn = turnOf(state, request);
  if (!turn) return [];
  turn.requests.delete(request);
  if (turn.requests.size > 0) return [];
  const queue = state.turns.get(turn.model) ?? [];
  const wasCurrent = queue[0] === turn;
  queue.splice(queue.indexOf(turn), 1);
  const [next] = queue;
  if (!next) state.turns.delete(turn.model);
  const cancelled: ContextEffect[] = turn.isChanging ? [{ kind: "cancel", turn }] : [];
  return next && wasCurrent ? [...cancelled, ...proceed(next)] : cancelled;
}

function turnOf({ turns }: ContextTurns, request: number): Turn | undefined {
  for (const queue of turns.values()) for (const turn of queue) if (turn.requests.has(request)) return turn;
  return undefined;
}
