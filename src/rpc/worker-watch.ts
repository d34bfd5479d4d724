// Watches one RPC worker. A worker serves one client at a time and queues two more, so while a model uses it no probe may be sent,
// and each connection that is opened and closed would fill that queue: one silent connection stays open instead, and its end is
// the signal. While nothing uses it, it is probed for its version and memory.
import type { Socket } from "node:net";
import type { WorkerSnapshot } from "../plan/observed.ts";
import { type Sighting, sighted, unprobed, type WorkerRecord } from "../plan/worker-verdict.ts";
import type { Resolver } from "./worker-target.ts";
import { dial, holdSilent, type Spoken, speak, type Target, type WorkerFacts, WorkerFault } from "./worker-wire.ts";

/**
 * The use of a worker: `idle`: no model uses it; `loaded`: a model does; `closed`: no probes, because a model is being loaded (it
 * opens a dozen connections one after another, and would wait behind ours for ever), sleeps, or its state is unknown.
 */
export type Use = "idle" | "loaded" | "closed";

export interface WatchOptions {
  readonly resolve: Resolver;
  readonly allowPublic: () => boolean;
  readonly use: (endpoint: string) => Use;
  /** Another address of the document that means this endpoint and is watched there. */
  readonly otherNameOf: (endpoint: string) => string | null;
  readonly intervalMs: number;
  /** ms that a lost worker has to answer before it is used again. */
  readonly stableMs: number;
  readonly now: () => number;
  /** Verdict, reason or endpoint have changed. */
  readonly onChange: () => void;
  /** It was lost while a model used it: that model's instance cannot respond any more. */
  readonly onLost: (endpoint: string, message: string) => void;
}

export interface WorkerWatch {
  snapshot(): WorkerSnapshot;
  /** What uses it may have changed. */
  review(): void;
  /** Closes the silent connection; resolves when no probe is in flight. */
  clear(): Promise<void>;
  /** The roster was edited: a worker that has come back is used at once. */
  accept(): void;
  /** Probes it now; false if it does not respond, which then counts as certain. */
  check(): Promise<boolean>;
  stop(): void;
}

/** A worker in a trusted network responds in milliseconds. */
const answerMs = 2_000;
/** Delay of the second probe after a first failure. */
const againMs = 250;

export function watchWorker(address: string, options: WatchOptions): WorkerWatch {
  let record: WorkerRecord = unprobed;
  let target: Target | null = null;
  /** Of the document's other spellings of this worker, the one that is used. */
  let double: string | null = null;
  let returned = false;
  let looking: Promise<void> | null = null;
  let timer: NodeJS.Timeout | null = null;
  let stopped = false;
  const contact = createContact({ onFree: () => plan(0), onLost: lost });

  const endpoint = (): string | null => (target && double === null ? `${target.host}:${target.port}` : null);
  const use = (): Use => {
    const where = endpoint();
    return where === null ? "idle" : options.use(where);
  };

  /** `fault`: why it does not answer; null: it does. */
  function note(fault: WorkerFault | null): void {
    const before = record;
    const at = options.now();
    const sighting: Sighting = fault
      ? { kind: "failed", at, reason: fault.reason, message: fault.message, certain: fault.certain }
      : { kind: "answered", at };
    record = sighted(record, sighting, options.stableMs);
    if (record.verdict === "down") returned = false;
    else if (before.verdict === "down") returned = true;
    if (before.verdict !== record.verdict || before.reason !== record.reason) options.onChange();
  }

  function lost(message: string): void {
    const where = endpoint();
    note(new WorkerFault("Lost", message, true));
    if (where !== null) options.onLost(where, message);
  }

  async function resolve(): Promise<Target> {
    const found = await options.resolve(address, { held: target, allowPublic: options.allowPublic() });
    if (stopped) return found;
    const before = endpoint();
    target = found;
    double = options.otherNameOf(`${found.host}:${found.port}`);
    if (endpoint() !== before) options.onChange();
    if (double === null) return found;
    throw new WorkerFault("Duplicate", `it is the worker that the document also names as ${double}`, true);
  }

  async function look(): Promise<void> {
    // An open connection outweighs any name service.
    if (contact.isHeld() && use() === "loaded") return note(null);
    try {
      const where = await resolve();
      if (stopped) return;
      const doing = use();
      if (doing !== "loaded") contact.release();
      // A lost worker is not probed until the model that used it is gone.
      if (doing === "closed" || (doing === "loaded" && record.verdict === "down")) return;
      if (doing === "idle") await contact.ask(where);
      else if (!(await contact.hold(where, () => !stopped && use() === "loaded"))) return;
      note(null);
    } catch (error) {
      if (!stopped) note(faultOf(error));
    }
  }

  /** One probe at a time; it schedules the next one. */
  function lookNow(): void {
    looking ??= look().finally(() => {
      looking = null;
      plan(record.failures > 0 ? Math.min(againMs, options.intervalMs) : options.intervalMs);
    });
  }

  function plan(ms: number): void {
    if (timer) clearTimeout(timer);
    timer = stopped ? null : setTimeout(lookNow, ms).unref();
  }

  lookNow();
  return {
    snapshot: () => {
      const { verdict, reason, message } = record;
      return { address, endpoint: endpoint(), verdict, reason, message, ...contact.facts(), returned };
    },
    review: () => {
      const doing = use();
      if (doing !== "loaded") contact.release();
      if ((doing === "loaded" && !contact.isHeld()) || (doing === "idle" && record.verdict === "down")) plan(0);
    },
    clear: async () => {
      contact.release();
      await looking;
    },
    accept: () => {
      returned = false;
    },
    check: async () => {
      if (record.verdict === "down" || !target) return false;
      try {
        await contact.ask(target);
        note(null);
        return true;
      } catch (error) {
        const { reason, message } = faultOf(error);
        note(new WorkerFault(reason, message, true));
        return false;
      }
    },
    stop: () => {
      stopped = true;
      if (timer) clearTimeout(timer);
      contact.stop();
    },
  };
}

function faultOf(error: unknown): WorkerFault {
  return error instanceof WorkerFault ? error : new WorkerFault("Unreachable", String(error));
}

interface ContactEvents {
  /** A probe that it had not answered is over. */
  readonly onFree: () => void;
  /** It went while a model used it. */
  readonly onLost: (message: string) => void;
}

/** The connections to a worker: at most one probe or silent connection at a time. */
function createContact({ onFree, onLost }: ContactEvents) {
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
