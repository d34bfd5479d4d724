// Models that end each time they are loaded: each such load costs seconds, and may cost another model its place, so after a
// failure a model rests before it is tried again. Pure but for the clock that it is given.
import { backoffDelay } from "../core/backoff.ts";
import { GatewayError } from "../core/errors.ts";

/** A model whose last load failed. */
export interface FailingLoad {
  /** In a row. */
  readonly failures: number;
  /** Not tried before this, ms since the epoch. */
  readonly until: number;
  /** The engine's last words. */
  readonly message: string;
}

export interface CoolDowns {
  failed(id: string, message: string): void;
  succeeded(id: string): void;
  /** Why a model is not loaded just now; null where it may be. `load_failing` */
  refusal(id: string): GatewayError | null;
  /** Somebody asks for it to be tried again, or for all of them. */
  forgive(id?: string): void;
  /** Those that have not been loaded since, rested or not. */
  failing(): ReadonlyMap<string, FailingLoad>;
}

export const coolDownBackoff = { firstMs: 5_000, maxMs: 300_000 } as const;

interface Entry extends FailingLoad {
  readonly identity: string | null;
}

export function createCoolDowns(options: {
  /** Changes with the model's file and with its settings in the router; null: nobody knows just now. */
  readonly identity: (id: string) => string | null;
  readonly now: () => number;
}): CoolDowns {
  const { now } = options;
  const entries = new Map<string, Entry>();

  /** Of the same file under the same settings: another one is a new chance. */
  function current(id: string): Entry | undefined {
    const entry = entries.get(id);
    if (!entry) return undefined;
    const identity = options.identity(id);
    if (identity === null || entry.identity === null || identity === entry.identity) return entry;
    entries.delete(id);
    return undefined;
  }

  return {
    failed: (id, message) => {
      const failures = (current(id)?.failures ?? 0) + 1;
      const until = now() + backoffDelay(failures, coolDownBackoff);
      entries.set(id, { failures, until, message, identity: options.identity(id) });
    },
    succeeded: (id) => void entries.delete(id),
    refusal: (id) => {
      const entry = current(id);
      if (!entry || entry.until <= now()) return null;
      const times = entry.failures === 1 ? "" : ` ${entry.failures} times in a row`;
      const retryAfterMs = entry.until - now();
      return new GatewayError(
        "load_failing",
        `${id} is not tried for another ${Math.ceil(retryAfterMs / 1000)} s, as loading it failed${times}: ${entry.message}`,
        { retryAfterMs },
      );
    },
    forgive: (id) => {
      if (id === undefined) entries.clear();
      else entries.delete(id);
    },
    failing: () =>
      new Map(
        [...entries.keys()].flatMap((id) => {
          const entry = current(id);
          return entry ? [[id, entry] as const] : [];
        }),
      ),
  };
}
