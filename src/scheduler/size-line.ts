// Who has a context size of a model next: sizes take turns, in the order in which they were first asked for. Pure; knows no
// model and changes nothing.

/** A place in a turn. */
export interface Place {
  /** Resolves when the turn begins: everybody of the turn before has what they came for, or has left. */
  readonly begun: Promise<void>;
  /**
   * The turn's change: made by whoever asks first, the same for all. `undone` is one that did not last: another is made. The
   * signal aborts when nobody is left in the turn. Errors: those of `make`.
   */
  change(make: (signal: AbortSignal) => Promise<void>, undone?: Promise<void>): Promise<void>;
  /** Safe to call twice. */
  leave(): void;
}

export interface SizeLine {
  /** Whether somebody waits for a size of this model, or is having it put in force. */
  isBusy(model: string): boolean;
  join(model: string, size: number): Place;
}

interface Turn {
  readonly size: number;
  readonly begun: Promise<void>;
  readonly begin: () => void;
  readonly deserted: AbortController;
  places: number;
  change: Promise<void> | null;
  /** Its size is in force. */
  isInForce: boolean;
}

export function createSizeLine(): SizeLine {
  const lines = new Map<string, Turn[]>();

  /** A turn whose size is in force takes nobody in while others wait: one busy client would keep them waiting for ever. */
  function openTurn(line: readonly Turn[], size: number): Turn | undefined {
    return line.find((turn) => turn.size === size && (!turn.isInForce || line.length === 1));
  }

  function remove(model: string, turn: Turn): void {
    const line = lines.get(model) ?? [];
    const rest = line.filter((other) => other !== turn);
    if (rest.length === 0) lines.delete(model);
    else lines.set(model, rest);
    rest[0]?.begin();
    turn.deserted.abort();
  }

  return {
    isBusy: (model) => lines.has(model),
    join: (model, size) => {
      const line = lines.get(model) ?? [];
      const turn = openTurn(line, size) ?? createTurn(size);
      if (!line.includes(turn)) lines.set(model, [...line, turn]);
      if (line.length === 0) turn.begin();
      turn.places++;
      let left = false;
      return {
        begun: turn.begun,
        change: (make, undone) => {
          if (turn.change !== null && turn.change !== undone) return turn.change;
          const change = make(turn.deserted.signal);
          turn.change = change;
          change.then(
            () => {
              turn.isInForce = true;
            },
            // Whoever waits for it is told; who joins later tries anew.
            () => {
              if (turn.change === change) turn.change = null;
            },
          );
          return change;
        },
        leave: () => {
          if (left) return;
          left = true;
          turn.places--;
          if (turn.places === 0) remove(model, turn);
        },
      };
    },
  };
}

function createTurn(size: number): Turn {
  let begin = (): void => undefined;
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  return { size, begun, begin, deserted: new AbortController(), places: 0, change: null, isInForce: false };
}
