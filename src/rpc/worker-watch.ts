// Watches one RPC worker. A worker serves one client at a time and queues two more, so while a model uses it no probe may be sent,
// and each connection that is opened and closed would fill that queue: one silent connection stays open instead, and its end is
// the signal. While nothing uses it, it is probed for its version and memory.
import type { Socket } from "node:net";
import type { WorkerSnapshot } from "../plan/observed.ts";
import { type Sighting, sighted, unprobed, type WorkerRecord } from "../plan/worker-verdict.ts";
import { type Resolver, Unusable } from "./worker-target.ts";
import { dial, holdSilent, type Spoken, speak, type Target, type WorkerFacts } from "./worker-wire.ts";

/**
 * The use of a worker: `idle`: no model uses it; `loaded`: a model does; `closed`: no probes, because a model is being loaded (it
 * opens a dozen connections one after another, and would wait behind ours for ever), sleeps, or its state is unknown.
 */
export type Use = "idle" | "loaded" | "closed";

export interface WatchOptions {
  readonly resolve: Resolver;
  readonly allowPublic: () => boolean;
  readonly use: (endpoint: string) => Use;
  /** Claims an endpoint for this address; returns another address of the document that has it already, null: none. */
  readonly claim: (endpoint: string) => string | null;
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

  function note(seen: Seen): void {
    const before = record;
    record = sighted(record, { ...seen, at: options.now() }, options.stableMs);
    if (record.verdict === "down") returned = false;
    else if (before.verdict === "down") returned = true;
    if (before.verdict !== record.verdict || before.reason !== record.reason) options.onChange();
  }

  function lost(message: string): void {
    const where = endpoint();
    note({ kind: "failed", reason: "Lost", message, certain: true });
    if (where !== null) options.onLost(where, message);
  }

  async function resolve(): Promise<void> {
    const found = await options.resolve(address, { held: target, allowPublic: options.allowPublic() });
    if (stopped) return;
    const before = endpoint();
    target = found;
    double = options.claim(`${found.host}:${found.port}`);
    if (endpoint() !== before) options.onChange();
    if (double !== null) throw new Unusable("Duplicate", `it is the worker that the document also names as ${double}`);
  }

  async function look(): Promise<void> {
    // An open connection outweighs any name service.
    if (contact.isHeld() && use() === "loaded") return note({ kind: "answered" });
    try {
      await resolve();
    } catch (error) {
      return stopped ? undefined : note(unresolved(error));
    }
    if (stopped || !target) return;
    const doing = use();
    if (doing !== "loaded") contact.release();
    // A lost worker is not probed until the model that used it is gone.
    if (doing === "loaded" && record.verdict !== "down") {
      const seen = await contact.hold(target, () => !stopped && use() === "loaded");
      if (seen) note(seen);
    } else if (doing === "idle") note(await contact.ask(target));
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
    clear: contact.clear,
    accept: () => {
      returned = false;
    },
    check: async () => {
      if (record.verdict === "down" || !target) return false;
      const seen = await contact.ask(target);
      note(seen.kind === "failed" ? { ...seen, certain: true } : seen);
      return seen.kind === "answered";
    },
    stop: () => {
      stopped = true;
      if (timer) clearTimeout(timer);
      contact.stop();
    },
  };
}

type WithoutTime<T> = T extends unknown ? Omit<T, "at"> : never;
type Seen = WithoutTime<Sighting>;

function unresolved(error: unknown): Seen {
  const message = error instanceof Error ? error.message : String(error);
  const certain = error instanceof Unusable;
  return { kind: "failed", reason: certain ? error.reason : "Unresolvable", message, certain };
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
  let speaking: Promise<unknown> | null = null;
  let stopped = false;

  function during<T>(words: Promise<T>): Promise<T> {
    speaking = words;
    return words.finally(() => {
      if (speaking === words) speaking = null;
    });
  }

  async function probe(where: Target): Promise<Seen> {
    const name = `${where.host}:${where.port}`;
    const heard = open ?? (await speak(where, answerMs));
    if (heard.kind === "failed") return heard;
    ({ latencyMs } = heard);
    if (heard.kind === "answered") {
      ({ facts } = heard);
      // It may still break every load, as with another version of the protocol: the failed load names it.
      if (facts.devices.length > 0) return { kind: "answered" };
      return {
        kind: "failed",
        reason: "NoDevices",
        message: `${name} offers no device to compute with`,
        certain: true,
      };
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
    return { kind: "failed", reason: "NotAnswering", message };
  }

  /** Null: nothing is known by it. */
  async function connect(where: Target, isWanted: () => boolean): Promise<Seen | null> {
    const dialled = await dial(where, answerMs);
    if ("failure" in dialled) {
      // Its queue may be full; a refused connection means that its process is gone.
      if (dialled.failure.reason === "Refused" && isWanted())
        lose(`the RPC worker was lost while a model used it: ${dialled.failure.message}`);
      return null;
    }
    const { socket } = dialled;
    ({ latencyMs } = dialled);
    if (!isWanted()) {
      socket.destroy();
      return null;
    }
    held = socket;
    holdSilent(socket, (why) => {
      if (held === socket) lose(`the RPC worker ${where.host}:${where.port} was lost while a model used it (${why})`);
    });
    return { kind: "answered" };
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
    ask: (where: Target) => during(probe(where)),
    hold: (where: Target, isWanted: () => boolean) => during(connect(where, isWanted)),
    isHeld: () => held !== null,
    facts: () => ({ latencyMs, version: facts?.version ?? null, devices: facts?.devices ?? null }),
    release,
    clear: async () => {
      release();
      // The name service may be slow: afterwards a model may be loading, and no probe is sent.
      await speaking?.catch(() => undefined);
    },
    stop: () => {
      stopped = true;
      release();
      open?.leave();
    },
  };
}
