// Finds out that a process hangs which still answers for its health: nothing comes from it, and it computes nothing either.
// Of a whole process, not of one answer: an answer that is sent at its end, a long prompt and a request in the queue are
// silent for as long as they take. What stands for a process is its users' own.

export interface StallWatch<P extends object> {
  /** An answer is awaited from it; call the result when it is over. */
  begin(process: P): () => void;
  /** Something came from it. */
  sign(process: P): void;
}

/** Into so many parts its patience is cut; after the first two it is looked at, in each. */
const parts = 8;
const partsBeforeLooking = 2;

interface Watched {
  awaited: number;
  /**
   * Parts without a sign of life. Counted, and not read from a clock: the time in which this process itself stood still is
   * nobody's silence.
   */
  silentParts: number;
  /** How far it had computed when it was looked at last. */
  mark: string | null;
  isLooking: boolean;
  hangs: boolean;
  timer: NodeJS.Timeout | null;
}

export function createStallWatch<P extends object>(options: {
  readonly stallMs: number;
  /** Of others nothing is counted. */
  readonly isWatched: (process: P) => boolean;
  /** How far a process has computed, as a text that is another one with every step; null: that cannot be known. */
  readonly look: (process: P) => Promise<string | null>;
  /** Told once of each process. */
  readonly onStall: (process: P) => void;
}): StallWatch<P> {
  const watched = new WeakMap<P, Watched>();

  function of(process: P): Watched {
    const known = watched.get(process);
    if (known) return known;
    const fresh: Watched = { awaited: 0, silentParts: 0, mark: null, isLooking: false, hangs: false, timer: null };
    watched.set(process, fresh);
    return fresh;
  }

  function tick(process: P, state: Watched): void {
    state.silentParts++;
    if (state.silentParts >= parts && !state.hangs) {
      state.hangs = true;
      options.onStall(process);
    } else if (state.silentParts >= partsBeforeLooking && !state.isLooking) void look(process, state);
  }

  async function look(process: P, state: Watched): Promise<void> {
    state.isLooking = true;
    const before = state.mark;
    state.mark = await options.look(process).catch(() => null);
    state.isLooking = false;
    // Of what cannot be looked into, silence says nothing.
    if (state.mark === null || (before !== null && state.mark !== before)) state.silentParts = 0;
  }

  return {
    sign: (process) => {
      if (options.isWatched(process)) of(process).silentParts = 0;
    },
    begin: (process) => {
      if (!options.isWatched(process)) return () => undefined;
      const state = of(process);
      state.awaited++;
      // Its silence so far stays: whoever gives up and asks again would keep a hang from ever being seen.
      state.timer ??= setInterval(() => tick(process, state), options.stallMs / parts).unref();
      let isOver = false;
      return () => {
        if (isOver) return;
        isOver = true;
        state.awaited--;
        if (state.awaited > 0 || !state.timer) return;
        clearInterval(state.timer);
        state.timer = null;
      };
    },
  };
}
