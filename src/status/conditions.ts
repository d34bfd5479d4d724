// Conditions: what is true of the gateway and of each model, why, and since when. Pure.
import type { OwnCommand } from "../core/own-command.ts";
import type { HeldAction } from "../plan/actions.ts";
import { isOfRepo } from "../plan/observed.ts";
import {
  type Condition,
  type Finding,
  failed,
  failureOf,
  finding,
  notServing,
  reasonOf,
  reported,
  type StatusInput,
} from "./finding.ts";
import { healthy } from "./health.ts";
import { speechFindings } from "./speech.ts";
import { workersReady } from "./worker-conditions.ts";

/** Unreadable paths in a message. */
const mostNamed = 10;

/** Below this the next pull is likely to fail. */
const lowDiskBytes = 512 * 1024 * 1024;

export function gatewayFindings(input: StatusInput): Finding[] {
  const { state, hub } = input;
  const { valid, reason, message } = input.source;
  const parts = [
    reported("SourceValid", valid ? "True" : reason === "Unread" ? "Unknown" : "False", reason, message),
    reported("StateWritable", state.writable ? "True" : "False", state.reason, state.message),
    synced(input),
    reconciling(input),
    stalled(input),
    routerReady(input),
    cacheReadable(input),
    diskRoom(input),
    hub.status === "unknown"
      ? finding("HubReachable", "NotTried")
      : finding("HubReachable", hub.status === "reachable" ? "Answered" : "HubUnreachable", hub.message),
    workersReady(input.desired, input.observed),
    ...speechFindings(input),
  ];
  return [ready(parts), healthy(notServing(parts), parts, input), ...parts];
}

/** Ready is what a person means by "does it work": chats can be served and nothing needs a hand. */
function ready(parts: readonly Finding[]): Finding {
  const blocking = notServing(parts);
  if (blocking) return reported("Ready", "False", blocking.reason, blocking.message);
  const stuck = parts.find((part) => part.type === "Stalled" && part.status === "True");
  if (stuck) return finding("Ready", "Stalled", stuck.message);
  const isOld = ({ type, status }: Finding): boolean =>
    (type === "SourceValid" || type === "StateWritable") && status === "False";
  const old = parts.find(isOld);
  return old ? finding("Ready", "ServingLastGood", old.message) : finding("Ready", "Serving");
}

function synced(input: StatusInput): Finding {
  const { plan, observed, running, desired, command } = input;
  for (const part of [observed.cache, observed.preset]) {
    if (part.state === "unknown") return finding("Synced", "NotObserved", part.why);
  }
  const prunes = plan.held.filter(({ why }) => why === "prune");
  const pending = [...plan.actions, ...plan.held.filter(({ why }) => why !== "prune").map((held) => held.action)];
  if (pending.length === 0 && running.length === 0) {
    const [left] = plan.findings;
    if (left) {
      const more = plan.findings.size > 1 ? ` (and ${plan.findings.size - 1} more)` : "";
      return finding("Synced", reasonOf(left[0], input), `${left[0]}: ${left[1]}${more}`);
    }
    if (observed.router.phase !== "ready") return finding("Synced", "OutOfSync", "The router is not running.");
    const hidden = observed.cache.state === "known" ? observed.cache.value.unreadable : [];
    const unseen = desired.models.find((model) => isOfRepo(model.id, hidden));
    if (unseen)
      return finding("Synced", "NotObserved", `The folder of ${unseen.id} in the model cache cannot be read.`);
    const [prune] = prunes;
    if (prune) return prunePending(prune, prunes.length - 1);
    return plan.spared.length > 0 ? pruneHeld(plan.spared, command) : finding("Synced", "AsDesired");
  }
  const what = new Set([...pending, ...running.map(({ action }) => action)].map(({ message }) => message));
  return finding("Synced", desired.suspend ? "Suspended" : "OutOfSync", [...what].join("; "));
}

function prunePending({ action, because, until }: HeldAction, more: number): Finding {
  const when = until === null ? "" : ` (due ${new Date(until).toISOString()})`;
  const others = more > 0 ? ` (and ${more} more)` : "";
  return finding("Synced", "PrunePending", `${action.message}${when}: ${because}${others}.`);
}

/** It stays like this until the document changes. */
function pruneHeld(spared: readonly string[], command: OwnCommand): Finding {
  const [first = "", ...more] = spared;
  const kept = more.length > 0 ? `${first} and ${more.length} more` : first;
  return finding(
    "Synced",
    "PruneHeld",
    `Pruning leaves ${kept}, as the list of models was emptied. To delete one of them: \`${command("rm", "ID")}\`.`,
  );
}

function reconciling({ running, plan }: StatusInput): Finding {
  const settling = plan.held.find((held) => held.why === "settling");
  const acting = running.length > 0 || !settling ? running : [settling];
  if (acting.length > 0)
    return finding("Reconciling", "Progressing", acting.map(({ action }) => action.message).join("; "));
  const retry = plan.held.find((held) => held.why === "backoff" || held.why === "room");
  if (!retry) return finding("Reconciling", "Idle");
  return finding("Reconciling", "ProgressingWithRetry", `${retry.action.message}: waits for its next try.`);
}

function stalled({ plan, backoff }: StatusInput): Finding {
  const [first, ...others] = plan.held.filter((held) => held.why === "stalled");
  if (!first) return finding("Stalled", "NotStalled");
  const { kind, key, message } = first.action;
  const failure = failureOf(backoff, kind, key);
  const more = others.length > 0 ? ` (and ${others.length} more)` : "";
  if (!failure) return finding("Stalled", "Stalled", `${message} failed${more}`);
  const { reason, message: why } = failed("Stalled", failure);
  return reported("Stalled", "True", reason, `${message} failed: ${why}${more}`);
}

function routerReady({ observed, backoff, engineProblem }: StatusInput): Finding {
  const { router, preset, cache } = observed;
  if (router.binary === "installing") return finding("RouterReady", "EngineInstalling");
  if (router.binary === "missing")
    return engineProblem
      ? reported("RouterReady", "False", engineProblem.reason, engineProblem.message)
      : finding("RouterReady", "NotStarted");
  if (router.phase === "ready")
    return router.silentSince === null
      ? finding("RouterReady", "Running", `The router runs as process ${router.pid ?? 0}.`)
      : finding("RouterReady", "RouterSilent");
  const start = failureOf(backoff, "router.start", "router") ?? failureOf(backoff, "router.restart", "router");
  if (start) return failed("RouterReady", start);
  if (preset.state === "unknown") return finding("RouterReady", "PresetUnreadable", preset.why);
  if (cache.state === "unknown") return finding("RouterReady", "CacheUnreadable", cache.why);
  const write = failureOf(backoff, "preset.write", "preset");
  if (write) return failed("RouterReady", write);
  if (router.phase === "starting") return finding("RouterReady", "Starting");
  if (router.crashes.length === 0) return finding("RouterReady", "NotStarted");
  const what = "The router exited by itself and is restarted. Its last output:";
  return finding("RouterReady", "RouterCrashed", `${what} ${router.lastWords}`);
}

function cacheReadable({ observed: { cache } }: StatusInput): Finding {
  if (cache.state === "unknown") return finding("CacheReadable", "NotObserved", cache.why);
  const { faults } = cache.value;
  if (faults.length === 0) return finding("CacheReadable", "Readable");
  const named = faults.slice(0, mostNamed).join(", ") + (faults.length > mostNamed ? ", …" : "");
  return finding("CacheReadable", "EntriesUnreadable", `Entries of the model cache cannot be read: ${named}.`);
}

function diskRoom({ observed: { freeBytes }, plan }: StatusInput): Finding {
  const crowded = plan.held.find((held) => held.why === "room");
  if (crowded) return finding("DiskRoom", "DiskFull", crowded.action.message);
  if (freeBytes.state === "unknown") return finding("DiskRoom", "NotObserved", freeBytes.why);
  const megabytes = Math.floor(freeBytes.value / 1e6);
  return freeBytes.value < lowDiskBytes
    ? finding("DiskRoom", "DiskFull", `Only ${megabytes} MB are free on the disk of the model cache.`)
    : finding("DiskRoom", "Enough", `${megabytes} MB are free on the disk of the model cache.`);
}

/** Gives findings their times: one that had the same status before keeps its own. `now`: ISO 8601. */
export function toConditions(
  findings: readonly Finding[],
  before: readonly Condition[],
  generation: number,
  now: string,
): Condition[] {
  return findings.map((found) => {
    const earlier = before.find((condition) => condition.type === found.type);
    const lastTransitionTime = earlier?.status === found.status ? earlier.lastTransitionTime : now;
    return { ...found, observedGeneration: generation, lastTransitionTime };
  });
}
