// Context sizes of a model take turns, in the order in which they were first asked for. A turn's change is made once, for all
// its requests; the next turn begins when each of them has its lease or has left.

export interface ContextTurn {
  readonly model: string;
  readonly size: number;
  /** True: it waits for the change. */
  readonly requests: Map<number, boolean>;
  /** The size was in force for one of them, and another client changed it. */
  isRepeated: boolean;
  isChanging: boolean;
  isInForce: boolean;
}

/** By model; the first turn is the current one. */
export type ContextTurns = Map<string, ContextTurn[]>;

export type ContextEvent =
  | { kind: "join"; request: number; model: string; size: number; isRepeated: boolean }
  | { kind: "changed"; turn: ContextTurn; error: unknown }
  | { kind: "leave"; request: number };

export type ContextEffect =
  | { kind: "change"; turn: ContextTurn }
  /** No request waits for the change any more. */
  | { kind: "cancel"; turn: ContextTurn }
  | { kind: "ready"; request: number }
  | { kind: "refuse"; request: number; error: unknown };

export function decideContext(turns: ContextTurns, event: ContextEvent): readonly ContextEffect[] {
  if (event.kind === "join") return join(turns, event);
  if (event.kind === "leave") return leave(turns, event.request);
  event.turn.isChanging = false;
  event.turn.isInForce = event.error === null;
  return settle(event.turn, event.error);
}

function join(
  turns: ContextTurns,
  { request, model, size, isRepeated }: ContextEvent & { kind: "join" },
): ContextEffect[] {
  const queue = turns.get(model) ?? [];
  turns.set(model, queue);
  // A turn whose size is in force takes no more requests while others wait: one busy client would keep them waiting for ever.
  const open = queue.find((turn) => turn.size === size && (!turn.isInForce || (queue.length === 1 && !isRepeated)));
  const turn = open ?? { model, size, requests: new Map(), isRepeated, isChanging: false, isInForce: false };
  if (!open) queue.push(turn);
  turn.isRepeated ||= isRepeated;
  turn.requests.set(request, true);
  return queue[0] === turn ? begin(turn) : [];
}

/** Makes the change of the current turn, if it is not in force or under way. */
function begin(turn: ContextTurn): ContextEffect[] {
  if (turn.isInForce) return settle(turn, null);
  if (turn.isChanging) return [];
  turn.isChanging = true;
  return [{ kind: "change", turn }];
}

/** The change is made, or has failed for all requests that wait for it; a later request tries again. */
function settle({ requests }: ContextTurn, error: unknown): ContextEffect[] {
  const waiting = [...requests].filter(([, isWaiting]) => isWaiting);
  return waiting.map(([request]) => {
    requests.set(request, false);
    return error === null ? { kind: "ready", request } : { kind: "refuse", request, error };
  });
}

function leave(turns: ContextTurns, request: number): ContextEffect[] {
  const turn = [...turns.values()].flat().find(({ requests }) => requests.has(request));
  turn?.requests.delete(request);
  if (!turn || turn.requests.size > 0) return [];
  const queue = turns.get(turn.model) ?? [];
  const wasCurrent = queue[0] === turn;
  queue.splice(queue.indexOf(turn), 1);
  const [next] = queue;
  if (!next) turns.delete(turn.model);
  return [...(turn.isChanging ? [{ kind: "cancel", turn } as const] : []), ...(next && wasCurrent ? begin(next) : [])];
}
