// Counters, wired: they follow what the parts report, and wake none of them.
import { createRequestMeters } from "../metrics/requests.ts";
import { createWorkMeters } from "../metrics/work.ts";
import type { Base } from "./events.ts";
import type { Machine } from "./machine.ts";
import type { Scheduling } from "./scheduling.ts";

export function createMetering({ events, router, idOf }: Base & Machine & Pick<Scheduling, "idOf">) {
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
  return { requests, work };
}
