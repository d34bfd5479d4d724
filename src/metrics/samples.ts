// What a scrape finds, family by family. Reads counters and the status, and asks nothing of the machine. Pure.

import type { StatusReport } from "../status/report.ts";
import type { FamilyName } from "./families.ts";
import type { Histogram } from "./histogram.ts";
import type { RequestMeters } from "./requests.ts";
import { statusClasses } from "./requests.ts";
import type { WorkMeters } from "./work.ts";

type Labels = Readonly<Record<string, string>>;

export interface Sample {
  readonly value: number;
  readonly labels?: Labels;
  /** An object that lives as long as its series: its text is made once. */
  readonly sharedLabels?: Labels;
  /** After the family's name. */
  readonly suffix?: "_bucket" | "_sum" | "_count";
}

export type Samples = Readonly<Record<FamilyName, readonly Sample[]>>;

export interface MeteredParts {
  readonly requests: RequestMeters;
  readonly work: WorkMeters;
}

/** A family without a sample is not served: whoever reads the first one finds one. */
export function samplesOf(report: StatusReport, { requests, work }: MeteredParts): Samples {
  return { ...ofStatus(report), ...ofModels(report, work), ...ofWork(work), ...ofRequests(report, requests) };
}

const one = (value: number | boolean): readonly Sample[] => [{ value: Number(value) }];

function ofStatus({ gateway, router, conditions, generation, observedGeneration }: StatusReport) {
  const is = (type: string): readonly Sample[] =>
    one(conditions.some((condition) => condition.type === type && condition.status === "True"));
  return {
    info: [{ value: 1, labels: { version: gateway.version } }],
    ready: one(gateway.ready),
    healthy: is("Healthy"),
    synced: is("Synced"),
    source_valid: is("SourceValid"),
    stalled: is("Stalled"),
    condition: conditions.flatMap(({ type, status }) =>
      ["True", "False", "Unknown"].map((each) => ({ value: Number(each === status), labels: { type, status: each } })),
    ),
    generation: one(generation),
    observed_generation: one(observedGeneration),
    router_connected: one(router.connected),
  } as const;
}

function ofModels({ models }: StatusReport, work: WorkMeters) {
  const is = (type: string): readonly Sample[] =>
    models.map(({ id, conditions }) => ({
      value: Number(conditions.find((condition) => condition.type === type)?.status === "True"),
      labels: { model: id },
    }));
  const loads = [...work.loads()];
  return {
    model_ready: is("Ready"),
    model_loaded: is("Loaded"),
    model_loads_total: loads.flatMap(([model, { succeeded, failed }]) => [
      { value: succeeded, labels: { model, outcome: "succeeded" } },
      { value: failed, labels: { model, outcome: "failed" } },
    ]),
    model_unloads_total: loads.map(([model, { unloads }]) => ({ value: unloads, labels: { model } })),
  };
}

function ofWork(work: WorkMeters) {
  const { driftMended, lastSuccessAt, pullBytes, routerStarts } = work.totals();
  const actions = [...work.actions()];
  return {
    last_success_timestamp_seconds: one(lastSuccessAt / 1000),
    drift_mended_total: one(driftMended),
    actions_total: actions.flatMap(([kind, meter]) =>
      (["succeeded", "failed", "cancelled"] as const).map((outcome) => ({
        value: meter[outcome],
        labels: { kind, outcome },
      })),
    ),
    action_duration_seconds: actions.flatMap(([kind, { duration }]) => buckets({ kind }, duration)),
    router_reloads_total: one(work.actions().get("router.reload")?.succeeded ?? 0),
    router_restarts_total: one(Math.max(0, routerStarts - 1)),
    pull_bytes_total: one(pullBytes),
  };
}

function ofRequests({ inFlight, waiting, speech }: StatusReport, meters: RequestMeters) {
  const [requests, models] = [meters.requests(), meters.models()];
  const waits = waiting.map(({ model, for: reason, ...entry }) => ({ labels: { model, for: reason }, ...entry }));
  return {
    requests_total: requests.flatMap(({ labels, counts }) =>
      statusClasses.flatMap((status, at) => {
        const value = counts[at] ?? 0;
        return value === 0 ? [] : [{ value, labels: { status }, sharedLabels: labels }];
      }),
    ),
    first_token_seconds: requests.flatMap(({ labels, firstToken }) => buckets(labels, firstToken)),
    request_duration_seconds: requests.flatMap(({ labels, duration }) => buckets(labels, duration)),
    prompt_tokens_total: models.map(({ labels, promptTokens }) => ({ value: promptTokens, sharedLabels: labels })),
    completion_tokens_total: models.map(({ labels, completionTokens }) => ({
      value: completionTokens,
      sharedLabels: labels,
    })),
    queue_wait_seconds: models.flatMap(({ labels, queueWait }) => buckets(labels, queueWait)),
    requests_in_flight: Object.entries(inFlight).map(([model, value]) => ({ value, labels: { model } })),
    requests_waiting: waits.map(({ labels, requests: value }) => ({ value, labels })),
    oldest_wait_seconds: waits.map(({ labels, oldestMs }) => ({ value: oldestMs / 1000, labels })),
    speech_requests: Object.entries(speech).flatMap(([engine, state]) =>
      state ? [{ value: state.inFlight, labels: { engine } }] : [],
    ),
  };
}

/** By bound: the labels of its bucket. */
const bounds = new Map<number, { readonly le: string }>();

function boundLabel(bound: number): { readonly le: string } {
  let label = bounds.get(bound);
  if (!label) bounds.set(bound, (label = { le: bound === Number.POSITIVE_INFINITY ? "+Inf" : String(bound) }));
  return label;
}

function buckets(sharedLabels: Labels, histogram: Histogram | null): readonly Sample[] {
  if (!histogram) return [];
  let value = 0;
  const samples: Sample[] = [];
  histogram.counts.forEach((count, at) => {
    value += count;
    const labels = boundLabel(histogram.bounds[at] ?? Number.POSITIVE_INFINITY);
    samples.push({ value, labels, sharedLabels, suffix: "_bucket" });
  });
  samples.push({ value: histogram.sum, sharedLabels, suffix: "_sum" }, { value, sharedLabels, suffix: "_count" });
  return samples;
}
