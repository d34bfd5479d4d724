// Watches one RPC worker. A worker serves one client at a time and queues two more, so while a model uses it no probe may be sent,
// and each connection that is opened and closed would fill that queue: one silent connection stays open instead, and its end is
// the signal. While nothing uses it, it is probed for its version and memory.
import type { Socket } from "node:net";
import type { WorkerSnapshot } from "../plan/observed.ts";
import { type Sighting, sighted, unprobed, type VerdictRules, type WorkerRecord } from "../plan/worker-verdict.ts";
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
  readonly rules: VerdictRules;
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
  const { now } = options;
  let record: WorkerRecord = unprobed;
  let target: Target | null = null;
  let facts: WorkerFacts | null = null;
  let latencyMs: number | null = null;
  let silent: Socket | null = null;
  /** A probe that it accepted and has not answered yet. */
  let open: Extract<Spoken, { kind: "silent" }> | null = null;
  /** Of the document's other spellings of this worker, the one that is used. */
  let double: string | null = null;
  let returned = false;
  let looking: Promise<void> | null = null;
  let speaking: Promise<unknown> | null = null;
  let timer: NodeJS.Timeout | null = null;
  const stopping = new AbortController();

  const endpoint = (): string | null => (target && double === null ? `${target.host}:${target.port}` : null);
  const use = (): Use => {
    const where = endpoint();
    return where === null ? "idle" : options.use(where);
  };

  function note(sighting: Sighting): void {
    const before = record;
    record = sighted(record, sighting, options.rules);
    if (record.verdict === "down") returned = false;
    else if (before.verdict === "down") returned = true;
    if (before.verdict !== record.verdict || before.reason !== record.reason) options.onChange();
  }

  function noteFailure(reason: string, message: string, certain = false): void {
    note({ kind: "failed", at: now(), reason, message, certain });
  }

  async function resolve(): Promise<void> {
    const found = await options.resolve(address, { held: target, allowPublic: options.allowPublic() });
    if (stopping.signal.aborted) return;
    const before = endpoint();
    target = found;
    double = options.claim(`${found.host}:${found.port}`);
    if (endpoint() !== before) options.onChange();
    if (double !== null) throw new Unusable("Duplicate", `it is the worker that the document also names as ${double}`);
  }

  async function look(): Promise<void> {
    // An open connection outweighs any name service.
    if (silent && use() === "loaded") return note({ kind: "answered", at: now() });
    try {
      await resolve();
    } catch (error) {
      if (stopping.signal.aborted) return;
      const message = error instanceof Error ? error.message : String(error);
      if (error instanceof Unusable) noteFailure(error.reason, message, true);
      else noteFailure("Unresolvable", message);
      return;
    }
    if (stopping.signal.aborted || !target) return;
    const doing = use();
    if (doing !== "loaded") letGo();
    // A lost worker is not probed until the model that used it is gone.
    if (doing === "loaded" && record.verdict !== "down") await during(stayConnected(target));
    else if (doing === "idle") await during(ask(target, false));
  }

  function during<T>(words: Promise<T>): Promise<T> {
    speaking = words;
    return words.finally(() => {
      if (speaking === words) speaking = null;
    });
  }

  async function ask(where: Target, certain: boolean): Promise<boolean> {
    if (open) {
      noteFailure("NotAnswering", notAnswering(where), certain);
      return false;
    }
    const heard = await speak(where, answerMs);
    if (heard.kind !== "failed") latencyMs = heard.latencyMs;
    if (heard.kind === "answered") return judge(where, heard.facts);
    if (heard.kind === "failed") noteFailure(heard.reason, heard.message, certain);
    else {
      open = heard;
      if (stopping.signal.aborted) heard.leave();
      void heard.over.then(() => {
        open = null;
        plan(0);
      });
      noteFailure("NotAnswering", notAnswering(where), certain);
    }
    return false;
  }

  /** A worker that responds may still break every load, as with another version of the protocol: the failed load names it. */
  function judge({ host, port }: Target, told: WorkerFacts): boolean {
    facts = told;
    if (told.devices.length === 0) {
      noteFailure("NoDevices", `${host}:${port} offers no device to compute with`, true);
      return false;
    }
    note({ kind: "answered", at: now() });
    return true;
  }

  async function stayConnected(where: Target): Promise<void> {
    const dialled = await dial(where, answerMs);
    if ("failure" in dialled) {
      // Its queue may be full; a refused connection means that its process is gone.
      if (dialled.failure.reason === "Refused" && use() === "loaded")
        lost(`the RPC worker was lost while a model used it: ${dialled.failure.message}`);
      return;
    }
    const { socket } = dialled;
    latencyMs = dialled.latencyMs;
    if (stopping.signal.aborted || use() !== "loaded") return void socket.destroy();
    silent = socket;
    holdSilent(socket, (why) => {
      if (silent === socket) lost(`the RPC worker ${where.host}:${where.port} was lost while a model used it (${why})`);
    });
    note({ kind: "answered", at: now() });
  }

  function lost(message: string): void {
    letGo();
    const where = endpoint();
    noteFailure("Lost", message, true);
    if (where !== null) options.onLost(where, message);
  }

  function letGo(): void {
    const socket = silent;
    silent = null;
    socket?.destroy();
  }

  /** One probe at a time; it schedules the next one. */
  function lookNow(): Promise<void> {
    looking ??= look().finally(() => {
      looking = null;
      plan(record.failures > 0 ? Math.min(againMs, options.intervalMs) : options.intervalMs);
    });
    return looking;
  }

  function plan(ms: number): void {
    if (timer) clearTimeout(timer);
    timer = null;
    if (stopping.signal.aborted) return;
    timer = setTimeout(() => void lookNow(), ms);
    timer.unref();
  }

  void lookNow();
  return {
    snapshot: () => ({
      address,
      endpoint: endpoint(),
      verdict: record.verdict,
      reason: record.reason,
      message: record.message,
      latencyMs,
      version: facts?.version ?? null,
      devices: facts?.devices ?? null,
      returned,
    }),
    review: () => {
      const doing = use();
      if (doing !== "loaded") letGo();
      if ((doing === "loaded" && !silent) || (doing === "idle" && record.verdict === "down")) plan(0);
    },
    clear: async () => {
      letGo();
      // The name service may be slow: afterwards a model may be loading, and no probe is sent.
      await speaking?.catch(() => undefined);
    },
    accept: () => {
      returned = false;
    },
    check: async () => {
      if (record.verdict === "down" || !target) return false;
      return ask(target, true);
    },
    stop: () => {
      stopping.abort();
      if (timer) clearTimeout(timer);
      letGo();
      open?.leave();
    },
  };
}

function notAnswering({ host, port }: Target): string {
  return `${host}:${port} accepts connections and does not respond: it hangs, or serves another client`;
}
