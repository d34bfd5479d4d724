// Finds out that a loaded model hangs on one of its RPC workers: nothing comes from it, and it computes nothing either. Of a
// whole process, not of one answer: an answer that is sent at its end, a long prompt and a request in the queue are silent
// for as long as they take.
import type { Instance } from "../engines/instances.ts";

export interface StallWatch {
  /** An answer is awaited from it; call the result when it is over. */
  begin(instance: Instance): () => void;
  /** Something came from it. */
  sign(instance: Instance): void;
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

export function createStallWatch(options: {
  readonly stallMs: number;
  /** How far a process has computed, as a text that is another one with every step; null: that cannot be known. */
  readonly look: (instance: Instance) => Promise<string | null>;
  /** Told once of each process. */
  readonly onStall: (instance: Instance) => void;
}): StallWatch {
  const watched = new WeakMap<Instance, Watched>();

  function of(instance: Instance): Watched {
    const known = watched.get(instance);
    if (known) return known;
    const fresh: Watched = { awaited: 0, silentParts: 0, mark: null, isLooking: false, hangs: false, timer: null };
    watched.set(instance, fresh);
    return fresh;
  }

  function tick(instance: Instance, state: Watched): void {
    state.silentParts++;
    if (state.silentParts >= parts && !state.hangs) {
      state.hangs = true;
      options.onStall(instance);
    } else if (state.silentParts >= partsBeforeLooking && !state.isLooking) void look(instance, state);
  }

  async function look(instance: Instance, state: Watched): Promise<void> {
    state.isLooking = true;
    const before = state.mark;
    state.mark = await options.look(instance).catch(() => null);
    state.isLooking = false;
    // Of what cannot be looked into, silence says nothing.
    if (state.mark === null || (before !== null && state.mark !== before)) state.silentParts = 0;
  }

  return {
    sign: (instance) => {
      if (instance.workers.length > 0) of(instance).silentParts = 0;
    },
    begin: (instance) => {
      if (instance.workers.length === 0) return () => undefined;
      const state = of(instance);
      state.awaited++;
      // Its silence so far stays: whoever gives up and asks again would keep a hang from ever being seen.
      state.timer ??= setInterval(() => tick(instance, state), options.stallMs / parts).unref();
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
