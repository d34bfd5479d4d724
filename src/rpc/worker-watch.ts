// Watches one RPC worker. A worker serves one client at a time and queues two more, so while a model uses it no probe may be sent,
// and each connection that is opened and closed would fill that queue: one silent connection stays open instead, and its end is
// the signal. While nothing uses it, it is probed for its version and memory.
import type { WorkerSnapshot } from "../plan/observed.ts";
import { afterProbe, unprobed, type WorkerRecord } from "../plan/worker-verdict.ts";
import { createContact, faultOf } from "./worker-contact.ts";
import type { Resolver } from "./worker-target.ts";
import { type Target, WorkerFault } from "./worker-wire.ts";

/**
 * The use of a worker: `idle`: no model uses it; `loaded`: a model does; `closed`: no probes, because a model is being loaded (it
 * opens a dozen connections one after another, and would wait behind ours for ever), sleeps, or its state is unknown.
 */
export type Use = "idle" | "loaded" | "closed";

export interface WatchOptions {
  readonly resolve: Resolver;
  readonly allowPublic: () => boolean;
  readonly use: (endpoint: string) => Use;
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
  /** Probes it now; false if it does not respond, which then counts as certain. */
  check(): Promise<boolean>;
  stop(): void;
}

/** Delay of the second probe after a first failure. */
const againMs = 250;

export function watchWorker(address: string, options: WatchOptions): WorkerWatch {
  let record: WorkerRecord = unprobed;
  let target: Target | null = null;
  let stopped = false;
  const probes = createProbes(look, () =>
    record.failures > 0 ? Math.min(againMs, options.intervalMs) : options.intervalMs,
  );
  const contact = createContact({ onFree: () => probes.plan(0), onLost: lost });

  const endpoint = (): string | null => (target ? `${target.host}:${target.port}` : null);
  const use = (): Use => {
    const where = endpoint();
    return where === null ? "idle" : options.use(where);
  };

  /** `fault`: why it does not answer; null: it does. */
  function note(fault: WorkerFault | null): void {
    const before = record;
    record = afterProbe(record, fault, options.now(), options.stableMs);
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
    if (endpoint() !== before) options.onChange();
    return found;
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

  probes.start();
  return {
    snapshot: () => {
      const { verdict, reason, message } = record;
      return { address, endpoint: endpoint(), verdict, reason, message, ...contact.facts() };
    },
    review: () => {
      const doing = use();
      if (doing !== "loaded") contact.release();
      if ((doing === "loaded" && !contact.isHeld()) || (doing === "idle" && record.verdict === "down")) probes.plan(0);
    },
    clear: async () => {
      contact.release();
      await probes.idle();
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
      probes.stop();
      contact.stop();
    },
  };
}

/** One probe at a time; each schedules the next one, after `nextMs`. */
function createProbes(probe: () => Promise<void>, nextMs: () => number) {
  let running: Promise<void> | null = null;
  let timer: NodeJS.Timeout | null = null;
  let stopped = false;

  function start(): void {
    running ??= probe().finally(() => {
      running = null;
      plan(nextMs());
    });
  }

  function plan(ms: number): void {
    if (timer) clearTimeout(timer);
    timer = stopped ? null : setTimeout(start, ms).unref();
  }

  return {
    start,
    plan,
    /** Resolves when no probe is in flight. */
    idle: async (): Promise<void> => {
      await running;
    },
    stop: (): void => {
      stopped = true;
      if (timer) clearTimeout(timer);
    },
  };
}
