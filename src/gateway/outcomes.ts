// What comes of actions and passes beside the work itself: the log, the journal, and what the inventory has to remember.
import type { FastifyBaseLogger } from "fastify";
import { toGatewayError } from "../core/errors.ts";
import type { Outcome } from "../execute/executor.ts";
import type { Inventory } from "../execute/inventory.ts";
import { namedEntries } from "../plan/removals.ts";
import type { Pass } from "../reconcile/loop.ts";
import type { Journal } from "../status/journal.ts";
import { actionBody } from "../status/report.ts";

export function tellOutcome({ action, ms, error }: Outcome, logger: FastifyBaseLogger, journal: Journal): void {
  const fields = { what: action.message, kind: action.kind, key: action.key, reason: action.reason, ms };
  if (error) {
    const told = { ...fields, code: error.code, error: error.message };
    if (error.code === "cancelled") logger.info(told, "an action was given up");
    else logger.warn(told, "an action failed");
    journal.record("action.failed", { ...actionBody(action), code: error.code, message: error.message });
  } else {
    logger.info(fields, "an action is done");
    journal.record("action.finished", { ...actionBody(action), ms });
  }
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
