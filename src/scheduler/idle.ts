// Unloads a model that nobody has used for as long as its last request said it is to be kept. Loads nothing, and leaves
// alone what somebody uses.
import type { KeepAlive } from "../core/keep-alive.ts";
import type { Instance } from "../engines/llama/instances.ts";
import type { Admission } from "./admission.ts";

export interface IdleUnload {
  /** A request says how long its model stays loaded after the last answer; `default` leaves what holds. */
  keep(upstreamId: string, keepAlive: KeepAlive): void;
  /** When a loaded model is unloaded if nobody uses it, ms since the epoch; null: not by itself. */
  expiresAt(upstreamId: string): number | null;
  stop(): void;
}

/** A loaded model; what was said of it is forgotten with it, whoever unloads it. */
interface Kept {
  readonly instance: Instance;
  keepMs: number;
  /** Infinity: not by itself, not yet, or it is being unloaded. */
  dueAt: number;
  inUse: boolean;
}

/** Longer is for ever: there are no dates for it. */
const longestKeepMs = 100 * 365 * 86_400_000;
const longestTimerMs = 2 ** 31 - 1;
/** A reload has hold of the model, or the router did not do as asked. */
const againMs = 1_000;
/** The document may let go of a pinned model. */
const pinnedAgainMs = 60_000;

export function createIdleUnload(options: {
  readonly admission: Admission;
  /** Where no request says; null: never. */
  readonly keepAliveMs: number | null;
  /** Whether the document keeps a model loaded, whatever requests say. */
  readonly isPinned: (upstreamId: string) => boolean;
  readonly now: () => number;
  readonly warn: (message: string, fields: object) => void;
}): IdleUnload {
  const { admission, now } = options;
  const kept = new Map<string, Kept>();
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  function schedule(): void {
    clearTimeout(timer);
    const next = Math.min(...[...kept.values()].map((entry) => entry.dueAt));
    if (stopped || !Number.isFinite(next)) return;
    timer = setTimeout(unloadDue, Math.min(Math.max(0, next - now()), longestTimerMs));
    timer.unref();
  }

  function unloadDue(): void {
    for (const entry of kept.values()) {
      if (entry.dueAt > now()) continue;
      if (options.isPinned(entry.instance.id)) entry.dueAt = now() + pinnedAgainMs;
      else void unload(entry);
    }
    schedule();
  }

  async function unload(entry: Kept): Promise<void> {
    entry.dueAt = Number.POSITIVE_INFINITY;
    try {
      if ((await admission.unloadIdle(entry.instance)) !== "busy") {
        if (kept.get(entry.instance.id) === entry) kept.delete(entry.instance.id);
        return;
      }
    } catch (error) {
      options.warn("an idle model could not be unloaded", { model: entry.instance.id, error: String(error) });
    }
    // Whoever uses it by now sets the time when done.
    if (!entry.inUse && entry.dueAt === Number.POSITIVE_INFINITY) entry.dueAt = now() + againMs;
    schedule();
  }

  admission.onUse({
    begun: (instance) => {
      const known = kept.get(instance.id);
      // Another address is another process: what was said of the earlier one went with it.
      const entry = known?.instance.origin === instance.origin ? known : createEntry(instance);
      kept.set(instance.id, entry);
      entry.inUse = true;
      entry.dueAt = Number.POSITIVE_INFINITY;
    },
    over: (id) => {
      const entry = kept.get(id);
      if (!entry) return;
      entry.inUse = false;
      entry.dueAt = now() + entry.keepMs;
      schedule();
    },
  });

  function createEntry(instance: Instance): Kept {
    const keepMs = lasting(options.keepAliveMs ?? Number.POSITIVE_INFINITY);
    return { instance, keepMs, dueAt: Number.POSITIVE_INFINITY, inUse: false };
  }

  return {
    keep: (upstreamId, keepAlive) => {
      const entry = kept.get(upstreamId);
      if (!entry || keepAlive.kind === "default") return;
      entry.keepMs = keepAlive.kind === "forever" ? Number.POSITIVE_INFINITY : lasting(keepAlive.seconds * 1000);
      if (entry.inUse) return;
      entry.dueAt = now() + entry.keepMs;
      schedule();
    },
    expiresAt: (upstreamId) => {
      const entry = kept.get(upstreamId);
      if (!entry || entry.keepMs === Number.POSITIVE_INFINITY || options.isPinned(upstreamId)) return null;
      return Math.round(Number.isFinite(entry.dueAt) ? entry.dueAt : now() + entry.keepMs);
    },
    stop: () => {
      stopped = true;
      clearTimeout(timer);
    },
  };
}

function lasting(ms: number): number {
  return ms > longestKeepMs ? Number.POSITIVE_INFINITY : ms;
}
