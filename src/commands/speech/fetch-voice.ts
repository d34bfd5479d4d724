// Downloads a voice that a request names before the document names it: the voice that speaks goes on meanwhile.
import { GatewayError, toGatewayError } from "../../core/errors.ts";
import { createLine } from "../../core/line.ts";
import type { Executor } from "../../execute/executor.ts";
import type { Action } from "../../plan/actions.ts";
import { choiceKey } from "../../plan/speech.ts";

/** Resolves when the voice is on disk. Throws `busy`, `cancelled`, `shutting_down`, and what the pull throws. */
export type FetchVoice = (voice: string, signal: AbortSignal) => Promise<void>;

const queueDepth = 31;

/** One voice at a time; a client that leaves cancels its download. `cachedVoices`: those on disk. */
export function createVoiceFetch(
  executor: Pick<Executor, "submit" | "follow" | "cancel" | "running">,
  cachedVoices: () => Promise<readonly string[]>,
): FetchVoice {
  const queue = createLine({
    width: 1,
    depth: queueDepth,
    refusal: (waiting) =>
      new GatewayError("busy", `${waiting} requests wait for voices already`, { retryAfterMs: 5_000 }),
    gone: () => new GatewayError("cancelled", "the client left"),
  });

  async function fetch(voice: string, signal: AbortSignal): Promise<void> {
    while (!(await cachedVoices()).includes(voice)) {
      try {
        await pulled(executor, voice, signal);
      } catch (error) {
        // The document named it too and does not any more, and the loop has cancelled its own pull.
        if (signal.aborted || toGatewayError(error).code !== "cancelled") throw error;
      }
    }
  }

  return async (voice, signal) => {
    const over = await queue.take(signal);
    await fetch(voice, signal).finally(over);
  };
}

function pulled(
  executor: Pick<Executor, "submit" | "follow" | "cancel" | "running">,
  voice: string,
  signal: AbortSignal,
): Promise<void> {
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
  return new Promise((resolve, reject) => {
    const leave = (): void => executor.cancel(key);
    const unfollow = executor.follow(key, {
      settled: ({ error }) => {
        unfollow();
        signal.removeEventListener("abort", leave);
        if (error) reject(error);
        else resolve();
      },
    });
    signal.addEventListener("abort", leave, { once: true });
    if (executor.submit(action) || executor.running().some((running) => running.action.key === key)) {
      if (signal.aborted) leave();
      return;
    }
    unfollow();
    reject(new GatewayError("shutting_down", "the gateway is stopping"));
  });
}
