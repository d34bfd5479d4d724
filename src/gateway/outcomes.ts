// What comes of actions and passes beside the work itself: the log, the journal, and what the inventory has to remember.
import type { FastifyBaseLogger } from "fastify";
import type { Outcome } from "../execute/executor.ts";
import type { Inventory } from "../execute/inventory.ts";
import type { Pass } from "../reconcile/loop.ts";
import type { Journal } from "../status/journal.ts";
import { actionBody } from "../status/report.ts";

export function tellOutcome({ action, ms, error }: Outcome, logger: FastifyBaseLogger, journal: Journal): void {
  const fields = { what: action.message, kind: action.kind, key: action.key, reason: action.reason, ms };
  if (error) {
    logger.warn({ ...fields, code: error.code, error: error.message }, "an action failed");
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

/** What the document once marked `keep` stays when it leaves the list. */
export async function noteKept(
  inventory: Inventory,
  { desired: { document } }: Pass,
  warn: (message: string, fields: object) => void,
): Promise<void> {
  const named = (keep: boolean): Set<string> =>
    new Set(document.models.filter((model) => (model.keep ?? false) === keep).map((model) => model.id));
  try {
    await inventory.noteKept(named(true), named(false));
  } catch (error) {
    warn("the inventory could not be written", { error: String(error) });
  }
}
