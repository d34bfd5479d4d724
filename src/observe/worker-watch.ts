// Watches one RPC worker. A worker serves one client at a time and keeps room for two more that wait, so while a model uses it
// nothing may be asked of it, and each connection that is opened and closed would fill that room: one connection stays
// open instead, silent, and its end tells. While nothing uses it, it is asked for its version and memory.
import { lookup } from "node:dns/promises";
import type { Socket } from "node:net";
import { systemCode } from "../core/errors.ts";
import { isIpv6, isTrustedAddress, parseWorker } from "../core/worker-address.ts";
import type { WorkerSnapshot } from "../plan/observed.ts";
import { type Sighting, sighted, unprobed, type VerdictRules, type WorkerRecord } from "../plan/worker-verdict.ts";
import { dial, type Spoken, speak, type Target, type WorkerFacts } from "./worker-wire.ts";

/**
 * What goes on at a worker: `idle`: nothing of ours uses it; `loaded`: a model does; `closed`: hands off, as a model is being
 * loaded (it opens a dozen connections one after another, and would wait behind ours for ever), sleeps, or nobody knows.
 */
export type Use = "idle" | "loaded" | "closed";

export interface WatchOptions {
  readonly allowPublic: () => boolean;
  readonly use: (endpoint: string) => Use;
  readonly intervalMs: number;
  readonly rules: VerdictRules;
  readonly now: () => number;
  /** Verdict, reason or endpoint are others now. */
  readonly onChange: () => void;
  /** It went while a model used it: that model's process cannot answer any more. */
  readonly onLost: (endpoint: string, message: string) => void;
}

export interface WorkerWatch {
  snapshot(): WorkerSnapshot;
  /** What uses it may have changed. */
  review(): void;
  /** Lets go of the silent connection; resolves when nothing is being asked any more. */
  clear(): Promise<void>;
  /** Asks it now, whatever the interval; false where it does not answer, which then counts as certain. */
  check(): Promise<boolean>;
  stop(): void;
}

/** A worker in a network that one trusts answers in milliseconds. */
const answerMs = 2_000;
/** After a first failure, the second look. */
const againMs = 250;
/** The system gives up a silent connection after this and ten more seconds without a sign of the other side. */
const keepAliveMs = 1_000;

class Unusable extends Error {
  readonly reason: string;
  constructor(reason: string, message: string) {
    super(message);
    this.reason = reason;
  }
}

export function watchWorker(address: string, options: WatchOptions): WorkerWatch {
  const { now } = options;
  let record: WorkerRecord = unprobed;
  let target: Target | null = null;
  let facts: WorkerFacts | null = null;
  let latencyMs: number | null = null;
  let silent: Socket | null = null;
  /** A question that it took and has not answered yet. */
  let open: Extract<Spoken, { kind: "silent" }> | null = null;
  let looking: Promise<void> | null = null;
  let timer: NodeJS.Timeout | null = null;
  let stopped = false;

  const endpoint = (): string | null => target && `${target.host}:${target.port}`;
  const use = (): Use => {
    const where = endpoint();
    return where === null ? "idle" : options.use(where);
  };

  function note(sighting: Sighting): void {
    const before = record;
    record = sighted(record, sighting, options.rules);
    if (before.verdict !== record.verdict || before.reason !== record.reason) options.onChange();
  }

  function noteFailure(reason: string, message: string, certain = false): void {
    note({ kind: "failed", at: now(), reason, message, certain });
  }

  async function resolve(): Promise<void> {
    const parsed = parseWorker(address);
    if (!parsed) throw new Unusable("Invalid", `${address} is not of the form HOST:PORT`);
    const { host, port } = parsed;
    if (isIpv6(host)) throw new Unusable("Unsupported", "the engine reaches workers by IPv4 only");
    let found: readonly string[];
    try {
      found = (await lookup(host, { all: true, family: 4 })).map((entry) => entry.address);
    } catch (error) {
      throw new Error(`${host} cannot be resolved (${systemCode(error) ?? String(error)})`, { cause: error });
    }
    const strange = options.allowPublic() ? undefined : found.find((candidate) => !isTrustedAddress(candidate));
    if (strange !== undefined) {
      const what = strange === host ? `${host} is` : `${host} is ${strange},`;
      throw new Unusable(
        "PublicAddress",
        `${what} a public address, and the protocol has neither password nor encryption; rpc.allowPublicWorkers permits it`,
      );
    }
    // A name with several addresses keeps the one in use: another order is no news.
    const host4 = found.find((candidate) => candidate === target?.host) ?? found[0];
    if (host4 === undefined) throw new Error(`${host} has no IPv4 address`);
    if (target?.host === host4 && target.port === port) return;
    target = { host: host4, port };
    options.onChange();
  }

  async function look(): Promise<void> {
    // A connection that stands says more than any name service.
    if (silent && use() === "loaded") return note({ kind: "answered", at: now() });
    try {
      await resolve();
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      if (error instanceof Unusable) noteFailure(error.reason, message, true);
      else noteFailure("Unresolvable", message);
      return;
    }
    if (stopped || !target) return;
    const doing = use();
    if (doing !== "loaded") letGo();
    // One that is lost already is left alone until the model that used it is gone.
    if (doing === "loaded" && record.verdict !== "down") await stayConnected(target);
    else if (doing === "idle") await ask(target, false);
  }

  async function ask(where: Target, certain: boolean): Promise<boolean> {
    if (open) {
      noteFailure("NotAnswering", notAnswering(where), certain);
      return false;
    }
    const spoken = await speak(where, answerMs);
    if (spoken.kind !== "failed") latencyMs = spoken.latencyMs;
    if (spoken.kind === "answered") {
      facts = spoken.facts;
      note({ kind: "answered", at: now() });
      return true;
    }
    if (spoken.kind === "failed") noteFailure(spoken.reason, spoken.message, certain);
    else {
      open = spoken;
      void spoken.over.then(() => {
        open = null;
        plan(0);
      });
      noteFailure("NotAnswering", notAnswering(where), certain);
    }
    return false;
  }

  async function stayConnected(where: Target): Promise<void> {
    const dialled = await dial(where, answerMs);
    if ("failure" in dialled) {
      // Its waiting room may be full with others; of one that refuses the process is gone.
      if (dialled.failure.reason === "Refused" && use() === "loaded")
        lost(`the RPC worker was lost while a model used it: ${dialled.failure.message}`);
      return;
    }
    const { socket } = dialled;
    latencyMs = dialled.latencyMs;
    if (stopped || use() !== "loaded") return void socket.destroy();
    silent = socket;
    socket.setKeepAlive(true, keepAliveMs);
    socket.unref();
    socket.resume();
    let why = "it closed the connection";
    socket.on("error", (error) => (why = systemCode(error) ?? error.message));
    socket.on("close", () => {
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

  /** One look at a time; the next one follows by itself. */
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
    if (stopped) return;
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
    }),
    review: () => {
      const doing = use();
      if (doing !== "loaded") letGo();
      if ((doing === "loaded" && !silent) || (doing === "idle" && record.verdict === "down")) plan(0);
    },
    clear: async () => {
      letGo();
      await looking;
    },
    check: async () => {
      if (record.verdict === "down" || !target) return false;
      return ask(target, true);
    },
    stop: () => {
      stopped = true;
      if (timer) clearTimeout(timer);
      letGo();
      open?.leave();
    },
  };
}

function notAnswering({ host, port }: Target): string {
  return `${host}:${port} takes connections and does not answer: it hangs, or serves somebody else`;
}
