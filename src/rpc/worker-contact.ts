// The connections to an RPC worker: a probe, or the silent connection that a loaded model needs.
import type { Socket } from "node:net";
import { dial, holdSilent, type Spoken, speak, type Target, type WorkerFacts, WorkerFault } from "./worker-wire.ts";

/** A worker in a trusted network responds in milliseconds. */
const answerMs = 2_000;

export function faultOf(error: unknown): WorkerFault {
  return error instanceof WorkerFault ? error : new WorkerFault("Unreachable", String(error));
}

interface ContactEvents {
  /** A probe that it had not answered is over. */
  readonly onFree: () => void;
  /** It went while a model used it. */
  readonly onLost: (message: string) => void;
}

/** At most one probe or silent connection at a time. */
export function createContact({ onFree, onLost }: ContactEvents) {
  let facts: WorkerFacts | null = null;
  let latencyMs: number | null = null;
  let held: Socket | null = null;
  /** A probe that it accepted and has not answered yet. */
  let open: Extract<Spoken, { kind: "silent" }> | null = null;
  let stopped = false;

  async function ask(where: Target): Promise<void> {
    const name = `${where.host}:${where.port}`;
    const heard = open ?? (await speak(where, answerMs));
    ({ latencyMs } = heard);
    if (heard.kind === "answered") {
      ({ facts } = heard);
      // It may still break every load, as with another version of the protocol: the failed load names it.
      if (facts.devices.length > 0) return;
      throw new WorkerFault("NoDevices", `${name} offers no device to compute with`, true);
    }
    if (open !== heard) {
      open = heard;
      if (stopped) heard.leave();
      void heard.over.then(() => {
        open = null;
        onFree();
      });
    }
    const message = `${name} accepts connections and does not respond: it hangs, or serves another client`;
    throw new WorkerFault("NotAnswering", message);
  }

  /** False: nothing is known by it. */
  async function hold(where: Target, isWanted: () => boolean): Promise<boolean> {
    try {
      const { socket, latencyMs: ms } = await dial(where, answerMs);
      latencyMs = ms;
      held = socket;
      holdSilent(socket, (why) => {
        if (held === socket) lose(`the RPC worker ${where.host}:${where.port} was lost while a model used it (${why})`);
      });
      if (!isWanted()) release();
    } catch (error) {
      // Its queue may be full; a refused connection means that its process is gone.
      const { reason, message } = faultOf(error);
      if (reason === "Refused" && isWanted()) lose(`the RPC worker was lost while a model used it: ${message}`);
    }
    return held !== null;
  }

  function lose(message: string): void {
    release();
    onLost(message);
  }

  function release(): void {
    const socket = held;
    held = null;
    socket?.destroy();
  }

  return {
    ask,
    hold,
    isHeld: () => held !== null,
    facts: () => ({ latencyMs, version: facts?.version ?? null, devices: facts?.devices ?? null }),
    release,
    stop: () => {
      stopped = true;
      release();
      open?.leave();
    },
  };
}
