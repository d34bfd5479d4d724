// Fetches a voice that somebody asks for before the document names it: until it is here everybody else goes on as before.
import { GatewayError } from "../../core/errors.ts";
import type { Executor } from "../../execute/executor.ts";
import type { Action } from "../../plan/actions.ts";
import { choiceKey } from "../../plan/speech.ts";

/** Resolves when the voice is on disk. Throws `busy`, `cancelled`, `shutting_down`, and what the pull says. */
export type FetchVoice = (voice: string, signal: AbortSignal) => Promise<void>;

const atMost = 32;

export function createVoiceFetch(executor: Pick<Executor, "submit" | "follow" | "cancel" | "running">): FetchVoice {
  const waiting = new Map<string, number>();
  let total = 0;

  function enter(key: string): () => void {
    if (total >= atMost)
      throw new GatewayError("busy", `${total} requests wait for voices already`, { retryAfterMs: 5_000 });
    total++;
    waiting.set(key, (waiting.get(key) ?? 0) + 1);
    return () => {
      total--;
      const left = (waiting.get(key) ?? 1) - 1;
      if (left > 0) waiting.set(key, left);
      else waiting.delete(key);
    };
  }

  return async (voice, signal) => {
    const key = choiceKey("synthesis", voice);
    const action: Action = {
      kind: "voice.pull",
      key,
      voice,
      requested: true,
      reason: "VoiceRequested",
      message: `pull ${voice}`,
      disrupts: [],
    };
    const leave = enter(key);
    try {
      for (;;) if (await pulled(executor, action, signal)) return;
    } finally {
      leave();
      // The last one takes the wish along. Where the document names it too, the loop asks for it again.
      if (signal.aborted && !waiting.has(key)) executor.cancel(key);
    }
  };
}

/** False where it was called off by somebody who did not ask for it. */
function pulled(
  executor: Pick<Executor, "submit" | "follow" | "running">,
  action: Action,
  signal: AbortSignal,
): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const gone = (): void => settle(() => reject(new GatewayError("cancelled", "the client left")));
    const unfollow = executor.follow(action.key, {
      settled: ({ error }) =>
        settle(() => {
          if (error && error.code !== "cancelled") reject(error);
          else resolve(error === null);
        }),
    });
    function settle(how: () => void): void {
      unfollow();
      signal.removeEventListener("abort", gone);
      how();
    }
    signal.addEventListener("abort", gone, { once: true });
    if (signal.aborted) gone();
    else if (!executor.submit(action) && !executor.running().some(({ action: { key } }) => key === action.key))
      settle(() => reject(new GatewayError("shutting_down", "the gateway is stopping")));
  });
}
