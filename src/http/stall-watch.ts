// Finds out that a loaded model hangs on one of its RPC workers: nothing comes from it, and it does not say how its slots are
// doing, which it does between two steps of computing. Of a whole process, not of one answer: an answer that is sent at its
// end, a long prompt and a request in the queue are silent for as long as they take.
import type { Instance } from "../engines/instances.ts";

export interface StallWatch {
  /** An answer is awaited from it; call the result when it is over. */
  begin(instance: Instance): () => void;
  /** Something came from it. */
  sign(instance: Instance): void;
}

/** Into so many parts its patience is cut; after the first two it is asked. */
const parts = 8;
const partsBeforeAsking = 2;

interface Watched {
  awaited: number;
  /**
   * Parts without a sign of life. Counted, and not read from a clock: the time in which this process itself stood still is
   * nobody's silence.
   */
  silentParts: number;
  isAsking: boolean;
  hangs: boolean;
  timer: NodeJS.Timeout | null;
}

/** `asks` resolves with whether the process said how its slots are doing; it may take as long as the process takes. */
export function createStallWatch(options: {
  readonly stallMs: number;
  readonly asks: (instance: Instance) => Promise<boolean>;
  /** Told once of each process. */
  readonly onStall: (instance: Instance) => void;
}): StallWatch {
  const watched = new WeakMap<Instance, Watched>();

  function of(instance: Instance): Watched {
    const known = watched.get(instance);
    if (known) return known;
    const fresh: Watched = { awaited: 0, silentParts: 0, isAsking: false, hangs: false, timer: null };
    watched.set(instance, fresh);
    return fresh;
  }

  function tick(instance: Instance, state: Watched): void {
    state.silentParts++;
    if (state.silentParts >= parts && state.isAsking && !state.hangs) {
      state.hangs = true;
      options.onStall(instance);
    } else if (state.silentParts >= partsBeforeAsking && !state.isAsking) void ask(instance, state);
  }

  async function ask(instance: Instance, state: Watched): Promise<void> {
    state.isAsking = true;
    // One that refuses the question is gone, which others notice; it does not hang.
    await options.asks(instance).then(
      (answered) => answered && sign(instance),
      () => undefined,
    );
    state.isAsking = false;
  }

  function sign(instance: Instance): void {
    if (instance.workers.length > 0) of(instance).silentParts = 0;
  }

  return {
    sign,
    begin: (instance) => {
      if (instance.workers.length === 0) return () => undefined;
      const state = of(instance);
      state.awaited++;
      // Its silence so far stays: whoever gives up and asks again would keep a hang from ever being seen.
      state.timer ??= setInterval(() => tick(instance, state), options.stallMs / parts);
      state.timer.unref();
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
