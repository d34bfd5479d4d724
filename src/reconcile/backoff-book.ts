// When a failed action may be tried again.
import { actionBackoff, backoffDelay } from "../core/backoff.ts";
import type { GatewayError } from "../core/errors.ts";
import { type Action, actionKinds, type BackoffEntry, backoffKey } from "../plan/actions.ts";

/** How often each action failed, so that the planner can hold it back. By counts and times alone. */
export function createBackoffBook(now: () => number) {
  const entries = new Map<string, BackoffEntry>();
  return {
    entries: (): ReadonlyMap<string, BackoffEntry> => entries,
    failed: (action: Action, error: GatewayError): BackoffEntry => {
      const failures = (entries.get(backoffKey(action))?.failures ?? 0) + 1;
      const stalled = error.reaction === "stall" || (error.reaction === "retry" && failures >= actionBackoff.tries);
      const delay = Math.max(backoffDelay(failures, actionBackoff), error.retryAfterMs ?? 0);
      const entry = {
        failures,
        until: now() + delay,
        stalled,
        neededBytes: error.neededBytes,
        code: error.code,
        reason: error.reason,
        message: error.message,
        hint: error.hint,
      };
      entries.set(backoffKey(action), entry);
      return entry;
    },
    succeeded: (action: Action): void => {
      // A start and a restart of the router are one matter: where one worked, the other's failures are over.
      for (const kind of actionKinds) entries.delete(`${kind} ${action.key}`);
    },
    /** The document has changed, or a retry was requested: everything may be tried again. */
    reset: () => entries.clear(),
  };
}
