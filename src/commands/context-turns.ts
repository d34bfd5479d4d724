// Context sizes of a model take turns, in the order in which they were first asked for. A turn's change is made once, for all
// its requests; the next turn begins when each of them has its lease or has left.
import { createSharedWork } from "../core/shared-work.ts";
import { unlessLeft } from "../core/unless-left.ts";

/** Puts a size in force; `isRepeated`: it was, and another client changed it. The signal aborts when no request waits for it. */
type Change = (model: string, size: number, isRepeated: boolean, signal: AbortSignal) => Promise<void>;

interface Turn {
  readonly size: number;
  isRepeated: boolean;
  isInForce: boolean;
  requests: number;
  /** Makes it the model's current turn. */
  begin(): void;
  readonly begun: Promise<void>;
  change(signal: AbortSignal): Promise<void>;
}

export class ContextTurns {
  private readonly change: Change;
  /** By model; the first turn is the current one. */
  private readonly queues = new Map<string, Turn[]>();

  constructor(change: Change) {
    this.change = change;
  }

  isAsked(model: string): boolean {
    return this.queues.has(model);
  }

  /** Runs `use` in the turn of a size. Errors: `cancelled`, those of the change, for all that wait for it, and of `use`. */
  async run<T>(
    { model, size, isRepeated }: { readonly model: string; readonly size: number; readonly isRepeated: boolean },
    signal: AbortSignal,
    use: () => Promise<T>,
  ): Promise<T> {
    const queue = this.queues.get(model) ?? [];
    this.queues.set(model, queue);
    // A turn whose size is in force takes no more requests while others wait: one busy client would keep them waiting for ever.
    const isOpen = (turn: Turn): boolean => !turn.isInForce || (queue.length === 1 && !isRepeated);
    const turn = queue.find((other) => other.size === size && isOpen(other)) ?? this.add(queue, model, size);
    turn.isRepeated ||= isRepeated;
    turn.requests++;
    try {
      await unlessLeft(turn.begun, signal);
      if (!turn.isInForce) await turn.change(signal);
      return await use();
    } finally {
      turn.requests--;
      if (turn.requests === 0) this.end(queue, model, turn);
    }
  }

  private add(queue: Turn[], model: string, size: number): Turn {
    let begin = (): void => undefined;
    const begun = new Promise<void>((resolve) => {
      begin = resolve;
    });
    const change = createSharedWork(async (signal) => {
      await this.change(model, size, turn.isRepeated, signal);
      turn.isInForce = true;
    });
    const turn: Turn = { size, isRepeated: false, isInForce: false, requests: 0, begin, begun, change };
    if (queue.push(turn) === 1) begin();
    return turn;
  }

  private end(queue: Turn[], model: string, turn: Turn): void {
    queue.splice(queue.indexOf(turn), 1);
    queue[0]?.begin();
    if (queue.length === 0) this.queues.delete(model);
  }
}
