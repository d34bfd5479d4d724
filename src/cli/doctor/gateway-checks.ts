// What is wrong with the running gateway, from its status and its metrics. Pure.
import type { ShortStatusBody, StatusBody } from "../../client/index.ts";
import { attentionIn } from "../../status/attention.ts";
import { bytesText, durationText } from "../text.ts";
import { type Check, failed, ok, unknown, warning } from "./check.ts";

export interface GatewayFacts {
  readonly status: StatusBody | ShortStatusBody;
  /** In the text format; null: they need a license key. */
  readonly metrics: string | null;
  readonly ownVersion: string;
  /** Bytes. */
  readonly memory: number;
  /** ms */
  readonly now: number;
}

export function gatewayChecks({ status, metrics, ownVersion, memory, now }: GatewayFacts): Check[] {
  const { version, ready } = status.gateway;
  const runs =
    version === ownVersion
      ? ok("gateway-runs", `version ${version}, ${ready ? "ready" : "not ready"}`)
      : warning("gateway-runs", `version ${version}, and this is ${ownVersion}`, "Restart the gateway.");
  if (!("conditions" in status) || metrics === null)
    return [runs, unknown("conditions", "the whole status needs a license key", "Set GATEWAY_LICENSE_KEY.")];
  const samples = samplesIn(metrics);
  const hours = (now - Date.parse(status.gateway.startedAt)) / 3_600_000;
  return [
    runs,
    conditions(status),
    thrashing(samples, hours),
    queue(status),
    coldStarts(samples),
    loadedMemory(status, memory),
    failedLoads(samples),
    ...workers(status),
  ];
}

interface MetricSample {
  /** Without the prefix. */
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export function samplesIn(metrics: string): MetricSample[] {
  return [...metrics.matchAll(/^model_gateway_(\w+)(?:\{(.*)\})? (\S+)$/gm)].map(
    ([, name = "", labels = "", value]) => ({
      name,
      labels: Object.fromEntries(
        [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, key = "", text = ""]) => [key, text]),
      ),
      value: Number(value),
    }),
  );
}

function sumOf(samples: readonly MetricSample[], name: string, labels: MetricSample["labels"] = {}): number {
  const wanted = Object.entries(labels);
  const found = samples.filter(
    (sample) => sample.name === name && wanted.every(([key, text]) => sample.labels[key] === text),
  );
  return found.reduce((sum, { value }) => sum + value, 0);
}

/** The hub and the workers have checks of their own. */
function conditions(status: StatusBody): Check {
  const others = new Set(status.rpc.workers.map(({ address }) => address));
  const wrong = attentionIn(status)
    .filter(({ subject, what }) => !others.has(subject) && !what.startsWith("HubReachable "))
    .map(({ subject, what, message }) => `${subject} ${what}: ${message}`.trim());
  if (wrong.length === 0) return ok("conditions", "nothing needs attention");
  const more = wrong.length > 3 ? ` (and ${wrong.length - 3} more)` : "";
  return failed(
    "conditions",
    `${wrong.slice(0, 3).join("; ")}${more}`,
    "docs/conditions.md has what to do about each reason.",
  );
}

/** Unloads per hour from which on models push each other out. */
const manyUnloads = 12;

function thrashing(samples: readonly MetricSample[], hours: number): Check {
  const loads = sumOf(samples, "model_loads_total", { outcome: "succeeded" });
  const unloads = sumOf(samples, "model_unloads_total");
  const evidence = `${loads} loads and ${unloads} unloads in ${durationText(Math.max(1, hours * 3600))}`;
  return unloads >= manyUnloads && unloads / Math.max(hours, 1 / 60) >= manyUnloads
    ? warning(
        "thrashing",
        evidence,
        "Raise --models-max if memory allows, set `pinned: true` for the model that is asked most, or use fewer models.",
      )
    : ok("thrashing", evidence);
}

const longWaitMs = 30_000;

function queue({ waiting }: StatusBody): Check {
  const [oldest] = waiting.toSorted((a, b) => b.oldestMs - a.oldestMs);
  if (!oldest) return ok("queue", "no request waits");
  const evidence = `${waiting.reduce((sum, { requests }) => sum + requests, 0)} requests wait, the oldest for ${Math.round(oldest.oldestMs / 1000)} s (${oldest.model}, for ${oldest.for})`;
  return oldest.oldestMs >= longWaitMs
    ? warning("queue", evidence, "docs/scheduling.md has what each wait is for.")
    : ok("queue", evidence);
}

/** Of requests, the share that may wait more than 5 s. */
const mostCold = 0.1;
const fewRequests = 20;

function coldStarts(samples: readonly MetricSample[]): Check {
  const all = sumOf(samples, "queue_wait_seconds_count");
  const slow = all - sumOf(samples, "queue_wait_seconds_bucket", { le: "5" });
  const evidence = `${slow} of ${all} requests waited more than 5 s`;
  return all >= fewRequests && slow / all > mostCold
    ? warning(
        "cold-starts",
        evidence,
        "Keep models loaded: --keep-alive -1, `pinned: true`, or `load` them after a start.",
      )
    : ok("cold-starts", evidence);
}

const mostMemory = 0.9;

function loadedMemory({ models }: StatusBody, memory: number): Check {
  const bytes = models.reduce((sum, { runtime }) => sum + (runtime?.memoryBytes ?? 0), 0);
  const evidence = `loaded models have ${bytesText(bytes)} of ${bytesText(memory)}`;
  return bytes > mostMemory * memory
    ? warning("loaded-memory", evidence, "Lower --models-max, a context size, or choose smaller quantizations.")
    : ok("loaded-memory", evidence);
}

function failedLoads(samples: readonly MetricSample[]): Check {
  const broken = samples.filter(
    ({ name, labels, value }) => name === "model_loads_total" && labels["outcome"] === "failed" && value > 0,
  );
  if (broken.length === 0) return ok("failed-loads", "no load has failed");
  const named = broken.map(({ labels, value }) => `${labels["model"]} (${value})`).join(", ");
  return warning("failed-loads", `loads failed: ${named}`, "`logs MODEL` has what the engine printed.");
}

function workers({ rpc }: StatusBody): Check[] {
  if (rpc.workers.length === 0) return [];
  const away = rpc.workers.flatMap(({ address, conditions: own }) => {
    const reachable = own.find(({ type }) => type === "Reachable");
    return reachable?.status === "False" ? [`${address}: ${reachable.message}`] : [];
  });
  if (away.length === 0) return [ok("workers", `${rpc.workers.length} answer`)];
  const report = rpc.mode === "rpc" ? failed : warning;
  return [report("workers", away.join("; "), "Start `model-gateway worker` there, or `rpc remove` it.")];
}
