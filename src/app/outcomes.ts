// What comes of actions and passes beside the work itself: the log, the journal, and what the inventory has to remember.
import type { FastifyBaseLogger } from "fastify";
import type { Inventory } from "../cache/inventory/inventory.ts";
import { toGatewayError } from "../core/errors.ts";
import { steadyNow } from "../core/steady.ts";
import { isProgress } from "../engines/llama/router.ts";
import type { RouterEvent } from "../engines/llama/router-client.ts";
import type { Outcome } from "../execute/executor.ts";
import { backoffKey, withRetry } from "../plan/actions.ts";
import { namedEntries } from "../plan/removals.ts";
import type { Loop, Pass } from "../reconcile/loop.ts";
import type { Journal } from "../status/journal.ts";
import { actionBody } from "../status/report.ts";

/** `backoff`: with this outcome in it. */
export function tellOutcome(
  { action, ms, error }: Outcome,
  backoff: ReturnType<Loop["backoff"]>,
  logger: FastifyBaseLogger,
  journal: Journal,
): void {
  const fields = { what: action.message, kind: action.kind, key: action.key, reason: action.reason, ms };
  if (error) {
    const isOver = error.code === "cancelled" || error.code === "shutting_down";
    const next = backoff.get(backoffKey(action));
    const text = next && !isOver ? withRetry(next, steadyNow()) : error.message;
    const told = { ...fields, code: error.code, error: text };
    if (error.code === "cancelled") logger.info(told, "an action was given up");
    else logger.warn(told, "an action failed");
    journal.record("action.failed", { ...actionBody(action), code: error.code, message: error.message });
  } else {
    logger.info(fields, "an action is done");
    journal.record("action.finished", { ...actionBody(action), ms });
  }
}

export function tellRouterEvent(routerEvent: RouterEvent, journal: Journal): void {
  const { model, event, data = null } = routerEvent;
  journal.record("model", { model, event, data }, isProgress(routerEvent) ? `load ${model}` : undefined);
}

/** Lines of the preset file that the router would have ended at. */
export function tellDisabled(
  lines: readonly string[],
  warn: (message: string, fields: object) => void,
  journal: Journal,
): void {
  warn("lines of router.preset.ini that the router cannot read are comments now", { lines });
  journal.record("preset", { disabled: lines });
}

/**
 * What the document once marked `keep` stays when it leaves the list; since when it has not named a model; and where the models
 * are that were put there.
 */
export async function noteSeen(
  inventory: Inventory,
  { at, desired: { document }, observed }: Pass,
  warn: (message: string, fields: object) => void,
): Promise<void> {
  const { cache } = observed;
  const named = (keep: boolean): Set<string> =>
    new Set(document.models.filter((model) => (model.keep ?? false) === keep).map((model) => model.id));
  try {
    await inventory.noteKept(named(true), named(false));
    const listed = namedEntries(document, observed);
    if (listed) await inventory.noteLeft(listed, at);
    const place = cache.state === "known" && cache.value.models.length > 0 ? (cache.value.place ?? null) : null;
    if (place !== null && inventory.entries().length > 0) await inventory.notePlace(place);
  } catch (thrown) {
    const error = toGatewayError(thrown);
    // The state folder tells of those itself, once and not at each pass.
    if (error.code === "state_unwritable" || error.code === "disk_full") return;
    warn("the inventory could not be written", { error: error.message });
  }
}
