// Listeners that only record what happened: in the log, the journal, the inventory and the counters. They wake nothing.
import { toGatewayError } from "../core/errors.ts";
import { steadyNow } from "../core/steady.ts";
import { isProgress } from "../engines/llama/router-list.ts";
import type { Outcome } from "../execute/executor.ts";
import { createRequestMeters } from "../metrics/requests.ts";
import { createWorkMeters } from "../metrics/work.ts";
import { backoffKey, withRetry } from "../plan/actions.ts";
import { namedEntries } from "../plan/removals.ts";
import type { Loop, Pass } from "../reconcile/loop.ts";
import type { Journal } from "../status/journal.ts";
import { actionBody } from "../status/report.ts";
import type { Base } from "./events.ts";
import type { Machine } from "./machine.ts";
import type { Scheduling } from "./scheduling.ts";
import type { State } from "./state.ts";

type Parts = Base &
  Pick<State, "inventory"> &
  Pick<Scheduling, "idOf" | "requests"> & { readonly journal: Journal; readonly loop: Loop };

/** ms between two looks at the requests in flight, while there are any. */
const requestsEveryMs = 500;

/** To be called after the loop listens: a failure is logged with its next try. */
export function recordEvents(parts: Parts): void {
  const { settings, logger, warn, events, journal } = parts;
  events.on("documentChanged", (generation) => journal.record("document", { generation }));
  events.on("sourceChecked", (status) => {
    if (status.valid) logger.info({ path: status.path }, "gateway.yaml is applied");
    else warn("gateway.yaml is not applied", { reason: status.reason, problem: status.message });
    journal.record("source", status);
  });
  events.on("routerChanged", (routerEvent) => {
    if (!routerEvent) return;
    const { model, event, data = null } = routerEvent;
    journal.record("model", { model, event, data }, isProgress(routerEvent) ? `load ${model}` : undefined);
  });
  events.on("actionStarted", (action) => journal.record("action.started", actionBody(action)));
  events.on("actionProgressed", (action, progress) =>
    journal.record("action.progress", { key: action.key, kind: action.kind, ...progress }, `action ${action.key}`),
  );
  events.on("actionSettled", (outcome) => recordOutcome(outcome, parts));
  events.on("conditionChanged", (subject, condition) => journal.record("condition", { subject, ...condition }));
  events.on("modelDrained", (model, cut) => {
    if (cut > 0) journal.record("drain", { model, reason: "DrainTimedOut", cut, drainMs: settings.drainMs });
  });
  events.on("presetLinesDisabled", (lines) => {
    warn("lines of router.preset.ini that the router cannot read are comments now", { lines });
    journal.record("preset", { disabled: lines });
  });
  events.on("mirrorMissed", (repo, why) => {
    warn("the hub is asked for what the mirror does not deliver", { repo, mirror: settings.hubMirror, why });
    journal.record("mirror", { repo, message: why });
  });
  events.on("passed", (pass) => void recordModels(pass, parts));
  recordRequests(parts);
}

/** Their counts where they differ, and which models were used: an event per chat would push out all others. */
function recordRequests({ events, journal, idOf, requests }: Parts): void {
  let used = new Set<string>();
  let last = "";
  let timer: NodeJS.Timeout | null = null;
  const begin = (): void => {
    timer ??= setTimeout(look, requestsEveryMs).unref();
  };

  function look(): void {
    timer = null;
    const { inFlight, waiting } = requests();
    const counts = {
      inFlight: Object.fromEntries(inFlight),
      waiting: waiting.map(({ model, requests: count, for: reason }) => ({ model, requests: count, for: reason })),
    };
    const text = JSON.stringify(counts);
    if (text !== last || used.size > 0) journal.record("requests", { ...counts, used: [...used] }, "requests");
    last = text;
    used = new Set();
    if (inFlight.size > 0 || waiting.length > 0) begin();
  }

  events.on("modelInUse", (id) => {
    used.add(idOf(id));
    begin();
  });
}

function recordOutcome({ action, ms, error }: Outcome, { logger, journal, loop }: Parts): void {
  const fields = { what: action.message, kind: action.kind, key: action.key, reason: action.reason, ms };
  if (!error) {
    logger.info(fields, "action succeeded");
    journal.record("action.finished", { ...actionBody(action), ms });
    return;
  }
  const isOver = error.code === "cancelled" || error.code === "shutting_down";
  const next = loop.backoff().get(backoffKey(action));
  const text = next && !isOver ? withRetry(next, steadyNow()) : error.message;
  const details = { ...fields, code: error.code, error: text };
  if (error.code === "cancelled") logger.info(details, "action cancelled");
  else logger.warn(details, "action failed");
  journal.record("action.failed", { ...actionBody(action), code: error.code, message: error.message });
}

/** A model marked `keep`, since when the document has not named it, and the place of the models. */
async function recordModels({ at, desired: { document }, observed }: Pass, { inventory, warn }: Parts): Promise<void> {
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
    // The state folder reports these itself, once and not at each pass.
    if (error.code === "state_unwritable" || error.code === "disk_full") return;
    warn("the inventory could not be written", { error: error.message });
  }
}

export function createMetering({ events, router, idOf, loaded }: Base & Machine & Pick<Scheduling, "idOf" | "loaded">) {
  const requests = createRequestMeters();
  const work = createWorkMeters();
  events.on("actionProgressed", work.progressed);
  events.on("actionSettled", work.settled);
  events.on("driftMended", work.driftMended);
  events.on("loadFailed", (id) => work.loadFailed(idOf(id)));
  events.on("modelsListed", () =>
    work.listed(new Map(router.instances.list().map(({ id, origin }) => [idOf(id), origin]))),
  );
  events.on("passed", (pass) => {
    work.passed(pass, Date.now());
    const { cache } = pass.observed;
    if (cache.state === "unknown") return;
    const known = new Set([...pass.desired.document.models, ...cache.value.models].map(({ id }) => id));
    requests.keep(known);
    work.keep(known);
  });
  return { requests, work, loaded };
}
