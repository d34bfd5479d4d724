// What a scrape is made of: the report of models that are ready, and meters of models that were all asked.
import { createRequestMeters } from "../../src/metrics/requests.ts";
import type { MeteredParts } from "../../src/metrics/samples.ts";
import { createWorkMeters } from "../../src/metrics/work.ts";
import type { StatusReport } from "../../src/status/report.ts";

export function reportOf(ids: readonly string[], parts: Partial<StatusReport> = {}): StatusReport {
  const conditionsOf = (...types: readonly string[]) => types.map((type) => ({ type, status: "True" }));
  return {
    gateway: { version: "1.2.3", ready: true },
    router: { connected: true },
    conditions: conditionsOf("Ready", "Healthy", "SourceValid", "Synced", "RouterReady", "DiskRoom", "HubReachable"),
    documentHash: "ab",
    generation: 3,
    observedGeneration: 3,
    models: ids.map((id) => ({ id, desired: true, conditions: conditionsOf("Ready", "Present", "Applied", "Loaded") })),
    inFlight: {},
    waiting: [],
    speech: { transcription: null, synthesis: null },
    ...parts,
  } as unknown as StatusReport;
}

/** Each model was loaded and asked. */
export function asked(ids: readonly string[]): MeteredParts {
  const [requests, work] = [createRequestMeters(), createWorkMeters()];
  work.listed(new Map(ids.map((id, at) => [id, `http://127.0.0.1:${at}`])));
  for (const id of ids) {
    for (const [family, route] of [["openai", "/chat/completions"]] as const) {
      const meter = requests.family(family).of(route, id);
      meter.ended(200);
      meter.firstTokenCame(120);
      meter.wasAnswered(1_200);
      meter.model.queueWait.observe(0.01);
      meter.model.addTokens(30, 4);
    }
  }
  const models = ids.map((id) => ({ id, slots: 4, isPinned: false }));
  return { requests, work, loaded: () => ({ models, modelSlots: 4 }) };
}
