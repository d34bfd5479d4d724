// Detects a process that hangs but still answers health checks: it sends nothing and computes nothing. Judged per process, not per
// response: unstreamed responses, long prompts and queued requests are silent for as long as they take.

export interface StallWatch<P extends object> {
  /** A response is awaited; call the result, once, when it has ended. */
  begin(process: P): () => void;
  /** It sent bytes. */
  sign(process: P): void;
}

/** The timeout has so many parts; from the third on the process is sampled in each. */
const parts = 8;
const partsBeforeLooking = 2;

interface Watched {
  awaited: number;
  /** Counted, not read from a clock: the time in which this process itself was suspended is no silence. */
  silentParts: number;
  /** Its compute progress at the last sample. */
  mark: string | null;
  isLooking: boolean;
  hangs: boolean;
  timer: NodeJS.Timeout | null;
}

export function createStallWatch<P extends object>(options: {
  readonly stallMs: number;
  /** Other processes are not watched. */
  readonly isWatched: (process: P) => boolean;
  /** The compute progress of a process, as a text that changes with every step; null: unknown. */
  readonly look: (process: P) => Promise<string | null>;
  /** Called once per process. */
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
    // Without compute progress, silence proves nothing.
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
      // Its silence so far stays: a client that aborts and retries would hide a hang for ever.
      state.timer ??= setInterval(() => tick(process, state), options.stallMs / parts).unref();
      return () => {
        state.awaited--;
        if (state.awaited > 0 || !state.timer) return;
        clearInterval(state.timer);
        state.timer = null;
      };
    },
  };
}
