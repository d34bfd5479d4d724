// What a scrape finds, family by family. Reads counters and the status, and asks nothing of the machine. Pure.

import type { StatusReport } from "../status/report.ts";
import type { Histogram } from "./histogram.ts";
import { type Load, type LoadedModels, loadOf } from "./load.ts";
import type { RequestMeters } from "./requests.ts";
import { statusClasses } from "./requests.ts";
import { labelText, type Sample, type Samples } from "./text.ts";
import type { LoadMeter, WorkMeters } from "./work.ts";

export interface MeteredParts {
  readonly requests: RequestMeters;
  readonly work: WorkMeters;
  readonly loaded: () => LoadedModels;
}

/** What a scrape finds, and the totals in it. */
export interface Scraped {
  readonly samples: Samples;
  readonly load: Load;
}

export function scrapedFrom(report: StatusReport, { requests, work, loaded }: MeteredParts): Scraped {
  const load = loadOf(report, loaded());
  const samples = {
    ...ofStatus(report),
    ...ofLoad(load),
    ...ofModels(report, work),
    ...ofWork(work),
    ...ofRequests(report, requests),
  };
  return { samples, load };
}

function isTrue(conditions: StatusReport["conditions"], wanted: string): boolean {
  return conditions.some(({ type, status }) => type === wanted && status === "True");
}

const one = (value: number | boolean): readonly Sample[] => [{ value: Number(value), labels: "" }];

/** Always one sample without labels each: a picker takes the first of a family and sums nothing. */
function ofLoad({ queued, running, busyRatio, models, modelSlots }: Load) {
  return {
    queued_requests: one(queued),
    running_requests: one(running),
    busy_ratio: one(busyRatio),
    loaded_models: one(models.length),
    model_slots: one(modelSlots),
  };
}

function ofStatus({ gateway, router, conditions, documentHash, generation, observedGeneration }: StatusReport) {
  const is = (type: string): readonly Sample[] => one(isTrue(conditions, type));
  return {
    info: [{ value: 1, labels: labelText({ version: gateway.version }) }],
    ready: one(gateway.ready),
    healthy: is("Healthy"),
    synced: is("Synced"),
    source_valid: is("SourceValid"),
    stalled: is("Stalled"),
    condition: conditions.flatMap(({ type, status }) =>
      ["True", "False", "Unknown"].map((each) => ({
        value: Number(each === status),
        labels: labelText({ type, status: each }),
      })),
    ),
    document_info: [{ value: 1, labels: labelText({ hash: documentHash }) }],
    generation: one(generation),
    observed_generation: one(observedGeneration),
    router_connected: one(router.connected),
  } as const;
}

/** Also of models that were not loaded yet: growth from a series that is not there yet is none to Prometheus. */
function ofModels({ models }: StatusReport, work: WorkMeters) {
  const loads = work.loads();
  const labelled = models.map(({ id, desired, conditions }) => ({
    desired,
    conditions,
    labels: labelText({ model: id }),
    ...(loads.get(id) ?? notLoaded),
  }));
  return {
    model_ready: labelled.map(({ labels, desired, conditions }) => ({
      value: Number(isTrue(conditions, "Ready")),
      labels: `${labels},desired="${String(desired)}"`,
    })),
    model_loaded: labelled.map(({ labels, conditions }) => ({ value: Number(isTrue(conditions, "Loaded")), labels })),
    model_loads_total: labelled.flatMap(({ labels, succeeded, failed }) => [
      { value: succeeded, labels: `${labels},outcome="succeeded"` },
      { value: failed, labels: `${labels},outcome="failed"` },
    ]),
    model_unloads_total: labelled.map(({ labels, unloads }) => ({ value: unloads, labels })),
  };
}

const notLoaded: LoadMeter = { succeeded: 0, failed: 0, unloads: 0 };

function ofWork(work: WorkMeters) {
  const { driftMended, lastSuccessAt, pullBytes, routerStarts } = work.totals();
  const actions = [...work.actions()];
  return {
    last_success_timestamp_seconds: one(lastSuccessAt / 1000),
    drift_mended_total: one(driftMended),
    actions_total: actions.flatMap(([kind, meter]) =>
      (["succeeded", "failed", "cancelled"] as const).map((outcome) => ({
        value: meter[outcome],
        labels: labelText({ kind, outcome }),
      })),
    ),
    action_duration_seconds: actions.flatMap(([kind, { duration }]) => buckets(labelText({ kind }), duration)),
    router_reloads_total: one(work.actions().get("router.reload")?.succeeded ?? 0),
    router_restarts_total: one(Math.max(0, routerStarts - 1)),
    pull_bytes_total: one(pullBytes),
  };
}

function ofRequests({ inFlight, waiting, speech }: StatusReport, meters: RequestMeters) {
  const [requests, models] = [meters.requests(), meters.models()];
  const waits = waiting.map(({ model, for: reason, ...entry }) => ({
    labels: labelText({ model, for: reason }),
    ...entry,
  }));
  return {
    requests_total: requests.flatMap(({ labels, counts }) =>
      statusClasses.flatMap((status, at) => {
        const value = counts[at] ?? 0;
        return value === 0 ? [] : [{ value, labels: `${labels},${labelText({ status })}` }];
      }),
    ),
    first_token_seconds: requests.flatMap(({ labels, firstToken }) => buckets(labels, firstToken)),
    request_duration_seconds: requests.flatMap(({ labels, duration }) => buckets(labels, duration)),
    prompt_tokens_total: models.map(({ labels, promptTokens }) => ({ value: promptTokens, labels })),
    completion_tokens_total: models.map(({ labels, completionTokens }) => ({ value: completionTokens, labels })),
    queue_wait_seconds: models.flatMap(({ labels, queueWait }) => buckets(labels, queueWait)),
    requests_in_flight: Object.entries(inFlight).map(([model, value]) => ({ value, labels: labelText({ model }) })),
    requests_waiting: waits.map(({ labels, requests: value }) => ({ value, labels })),
    oldest_wait_seconds: waits.map(({ labels, oldestMs }) => ({ value: oldestMs / 1000, labels })),
    speech_requests: Object.entries(speech).flatMap(([engine, state]) =>
      state ? [{ value: state.inFlight, labels: labelText({ engine }) }] : [],
    ),
  };
}

function buckets(labels: string, histogram: Histogram | null): readonly Sample[] {
  if (!histogram) return [];
  let value = 0;
  const samples: Sample[] = [...histogram.bounds, "+Inf"].map((bound, at) => {
    value += histogram.counts[at] ?? 0;
    return { value, labels: `${labels},le="${bound}"`, suffix: "_bucket" };
  });
  samples.push({ value: histogram.sum, labels, suffix: "_sum" }, { value, labels, suffix: "_count" });
  return samples;
}
