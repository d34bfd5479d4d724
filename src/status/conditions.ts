// Conditions: what is true of the gateway and of each model, why, and since when. Pure.
import { runnableContext } from "../core/context-size.ts";
import type { OwnCommand } from "../core/own-command.ts";
import { followedBy } from "../core/sentences.ts";
import type { Desired } from "../desired/document/document.ts";
import type { SourceStatus } from "../desired/document/parse.ts";
import type { BackoffEntry, HeldAction, Plan } from "../plan/actions.ts";
import { type CachedModel, findCached, holdsFilesOf, isOfRepo, type Observed } from "../plan/observed.ts";
import { presetCtxSize } from "../plan/preset-file.ts";
import { sourceState } from "../plan/sources.ts";
import { registeredCtxSize } from "../plan/wanted-preset.ts";
import { type Condition, type Finding, finding } from "./finding.ts";
import { drained, loadFailing, type RequestFacts } from "./requests.ts";
import { speechFindings } from "./speech.ts";
import { workersReady } from "./worker-conditions.ts";

export type { Condition, Finding } from "./finding.ts";

export interface StatusInput {
  readonly desired: Desired;
  readonly observed: Observed;
  readonly plan: Plan;
  readonly source: SourceStatus;
  /** Keys and kinds of what is under way. */
  readonly running: readonly {
    readonly kind: string;
    readonly key: string;
    readonly message: string;
    /** null: it waits for its turn. */
    readonly startedAt: number | null;
  }[];
  readonly backoff: ReadonlyMap<string, BackoffEntry>;
  readonly hub: { readonly status: "unknown" | "reachable" | "unreachable"; readonly message: string };
  /** Whether the state folder takes changes. */
  readonly state: { readonly writable: boolean; readonly reason: string; readonly message: string };
  readonly engineProblem: { readonly reason: string; readonly message: string } | null;
  readonly requests: RequestFacts;
  readonly command: OwnCommand;
}

/** Unreadable paths in a message. */
const mostNamed = 10;

/** Below this the next pull is likely to fail. */
const lowDiskBytes = 512 * 1024 * 1024;

export function gatewayFindings(input: StatusInput): Finding[] {
  const parts = [
    source(input),
    stateWritable(input),
    synced(input),
    reconciling(input),
    stalled(input),
    routerReady(input),
    cacheReadable(input),
    diskRoom(input),
    hubReachable(input),
    workersReady(input.desired, input.observed),
    ...speechFindings(input),
  ];
  return [ready(parts), ...parts];
}

/** Why no chat can be served, of the gateway's findings or conditions; a pull that is stuck, say, takes nobody's chats away. */
export function notServing(parts: readonly Finding[]): Finding | undefined {
  return (
    parts.find(({ type, status }) => type === "RouterReady" && status !== "True") ??
    parts.find(({ reason }) => reason === "TooFewWorkers")
  );
}

/** Ready is what a person means by "does it work": chats can be served and nothing needs a hand. */
function ready(parts: readonly Finding[]): Finding {
  const blocking = notServing(parts);
  if (blocking) return finding("Ready", "False", blocking.reason, blocking.message);
  const stuck = parts.find((part) => part.type === "Stalled" && part.status === "True");
  if (stuck) return finding("Ready", "False", "Stalled", stuck.message);
  const broken = parts.find((part) => part.type === "SourceValid" && part.status === "False");
  if (broken) return finding("Ready", "True", "ServingLastGood", broken.message);
  const fixed = parts.find((part) => part.type === "StateWritable" && part.status === "False");
  if (fixed) return finding("Ready", "True", "ServingLastGood", fixed.message);
  return finding("Ready", "True", "Serving", "the router answers");
}

function source({ source: { valid, reason, message } }: StatusInput): Finding {
  return finding("SourceValid", valid ? "True" : reason === "Unread" ? "Unknown" : "False", reason, message);
}

function stateWritable({ state: { writable, reason, message } }: StatusInput): Finding {
  return finding("StateWritable", writable ? "True" : "False", reason, message);
}

function synced({ plan, observed, running, desired, command }: StatusInput): Finding {
  for (const part of [observed.cache, observed.preset]) {
    if (part.state === "unknown") return finding("Synced", "Unknown", "NotObserved", part.why);
  }
  const prunes = plan.held.filter(({ why }) => why === "prune");
  const pending = [...plan.actions, ...plan.held.filter(({ why }) => why !== "prune").map((held) => held.action)];
  if (pending.length === 0 && running.length === 0) {
    const [left] = plan.findings;
    if (left) return finding("Synced", "False", reasonOf(left[0], desired, observed), left[1]);
    if (observed.router.phase !== "ready") return finding("Synced", "False", "OutOfSync", "the router is not running");
    const hidden = observed.cache.state === "known" ? observed.cache.value.unreadable : [];
    const unseen = desired.models.find((model) => isOfRepo(model.id, hidden));
    if (unseen)
      return finding(
        "Synced",
        "Unknown",
        "NotObserved",
        `the folder of ${unseen.id} in the model cache cannot be read`,
      );
    const [prune] = prunes;
    if (prune) return finding("Synced", "True", "PrunePending", prunePending(prune, prunes.length - 1));
    const kept = pruneHeld(plan.spared, command);
    return finding("Synced", "True", kept ? "PruneHeld" : "AsDesired", kept ?? "everything is as the document says");
  }
  const what = [
    ...new Set([...pending.map((action) => action.message), ...running.map((action) => action.message)]),
  ].join("; ");
  return finding("Synced", "False", desired.suspend ? "Suspended" : "OutOfSync", what);
}

function prunePending({ action, because, until }: HeldAction, more: number): string {
  const when = until === null ? "" : ` at ${new Date(until).toISOString()}`;
  return `${action.message}${when}: ${because}${more > 0 ? ` (and ${more} more)` : ""}`;
}

/** The reason for a finding of the plan, by the model's id in the cache. */
function reasonOf(cachedId: string, { models }: Desired, observed: Observed): string {
  const { cache } = observed;
  const isGone = models.some(
    (model) =>
      cache.state === "known" &&
      findCached(cache.value.models, model.id)?.id === cachedId &&
      sourceState(model, observed) === "missing",
  );
  return isGone ? "SourceMissing" : "CannotApply";
}

/** Nothing is pending: it stays like this until somebody says more. */
function pruneHeld(spared: readonly string[], command: OwnCommand): string | null {
  if (spared.length === 0) return null;
  const [first, ...more] = spared;
  const which = more.length > 0 ? `${first} and ${more.length} more` : first;
  return `prune leaves ${which}, as the list of models was emptied: name what you want to keep, and set allowEmpty: true or remove the others one by one (\`${command("rm", "ID")}\`) to have them deleted`;
}

function reconciling({ running, plan }: StatusInput): Finding {
  if (running.length > 0)
    return finding("Reconciling", "True", "Progressing", running.map((action) => action.message).join("; "));
  const settling = plan.held.find((held) => held.why === "settling");
  if (settling) return finding("Reconciling", "True", "Progressing", settling.action.message);
  const retry = plan.held.find((held) => held.why === "backoff" || held.why === "room");
  if (retry)
    return finding("Reconciling", "True", "ProgressingWithRetry", `${retry.action.message}: waiting to try again`);
  return finding("Reconciling", "False", "Idle", "nothing is under way");
}

function stalled({ plan, backoff }: StatusInput): Finding {
  const stuck = plan.held.filter((held) => held.why === "stalled");
  const [first] = stuck;
  if (!first) return finding("Stalled", "False", "NotStalled", "nothing is stuck");
  const entry = backoff.get(`${first.action.kind} ${first.action.key}`);
  const more = stuck.length > 1 ? ` (and ${stuck.length - 1} more)` : "";
  const why = entry ? `: ${explain(entry)}` : "";
  return finding("Stalled", "True", entry?.reason ?? "Stalled", `${first.action.message} failed${why}${more}`);
}

function explain({ message, hint }: BackoffEntry): string {
  return followedBy(message, hint);
}

function routerReady({ observed, backoff, engineProblem }: StatusInput): Finding {
  const { router, preset, cache } = observed;
  if (router.binary === "installing")
    return finding("RouterReady", "False", "EngineInstalling", "llama-server is being installed");
  if (router.binary === "missing") {
    if (!engineProblem) return finding("RouterReady", "False", "NotStarted", "llama-server is being looked for");
    return finding("RouterReady", "False", engineProblem.reason, engineProblem.message);
  }
  if (router.phase === "ready") {
    if (router.silentSince !== null)
      return finding(
        "RouterReady",
        "False",
        "RouterSilent",
        "the router does not answer; it is restarted if that lasts",
      );
    return finding("RouterReady", "True", "Running", `the router runs as process ${router.pid ?? 0}`);
  }
  const failure = backoff.get("router.start router") ?? backoff.get("router.restart router");
  if (failure) return finding("RouterReady", "False", failure.reason, `${explain(failure)}`);
  if (preset.state === "unknown")
    return finding(
      "RouterReady",
      "False",
      "PresetUnreadable",
      `${preset.why}: make it a file that can be read, or delete it`,
    );
  if (cache.state === "unknown") return finding("RouterReady", "False", "CacheUnreadable", cache.why);
  const write = backoff.get("preset.write preset");
  if (write) return finding("RouterReady", "False", write.reason, `${explain(write)}`);
  if (router.phase === "starting") return finding("RouterReady", "False", "Starting", "the router is starting");
  if (router.crashes.length > 0)
    return finding(
      "RouterReady",
      "False",
      "RouterCrashed",
      `the router ended by itself; it is started again. Its last words: ${router.lastWords}`,
    );
  return finding("RouterReady", "False", "NotStarted", "the router is not running yet");
}

function cacheReadable({ observed: { cache } }: StatusInput): Finding {
  if (cache.state === "unknown") return finding("CacheReadable", "Unknown", "NotObserved", cache.why);
  const { faults } = cache.value;
  if (faults.length === 0) return finding("CacheReadable", "True", "Readable", "every repository can be read");
  const named = faults.slice(0, mostNamed).join(", ") + (faults.length > mostNamed ? ", …" : "");
  return finding("CacheReadable", "False", "EntriesUnreadable", `entries of the model cache cannot be read: ${named}`);
}

function diskRoom({ observed: { freeBytes }, plan }: StatusInput): Finding {
  const crowded = plan.held.find((held) => held.why === "room");
  if (crowded) return finding("DiskRoom", "False", "DiskFull", crowded.action.message);
  if (freeBytes.state === "unknown") return finding("DiskRoom", "Unknown", "NotObserved", freeBytes.why);
  const free = `${Math.floor(freeBytes.value / 1e6)} MB free where the models live`;
  return freeBytes.value < lowDiskBytes
    ? finding("DiskRoom", "False", "DiskFull", `${free}: too little for a pull; delete something`)
    : finding("DiskRoom", "True", "Enough", free);
}

function hubReachable({ hub }: StatusInput): Finding {
  if (hub.status === "unknown") return finding("HubReachable", "Unknown", "NotTried", "the hub was not needed yet");
  return hub.status === "reachable"
    ? finding("HubReachable", "True", "Answered", hub.message)
    : finding("HubReachable", "False", "HubUnreachable", hub.message);
}

/** Present, Verified, Applied and Loaded of one model, which the document names or the cache holds; Drained where it was. */
export function modelFindings(id: string, input: StatusInput): Finding[] {
  const { observed, plan, backoff, running } = input;
  const cached = observed.cache.state === "known" ? findCached(observed.cache.value.models, id) : undefined;
  return [
    present(id, input, cached),
    verified(observed, cached),
    applied(id, input, cached),
    loaded(input, cached),
    ...drained(cached?.upstreamId, input.requests),
  ];

  function present(model: string, { observed: { cache } }: StatusInput, found: CachedModel | undefined): Finding {
    if (cache.state === "unknown") return finding("Present", "Unknown", "NotObserved", cache.why);
    if (!found && isOfRepo(model, cache.value.unreadable))
      return finding("Present", "Unknown", "NotObserved", "its folder in the model cache cannot be read");
    if (found?.complete)
      return finding("Present", "True", "Cached", `${found.files.length} file(s), ${found.bytes} bytes`);
    const active = running.find((action) => action.key === `model/${model}`);
    if (active?.startedAt === null)
      return finding("Present", "False", "Queued", `${active.message}: waits for its turn`);
    if (active) return finding("Present", "False", "Pulling", active.message);
    const crowded = plan.held.find((held) => held.why === "room" && held.action.key === `model/${model}`);
    if (crowded) return finding("Present", "False", "DiskFull", crowded.action.message);
    const failure = backoff.get(`model.pull model/${model}`) ?? backoff.get(`model.import model/${model}`);
    if (failure) return finding("Present", "False", failure.reason, `${explain(failure)}`);
    const planned = [...plan.actions, ...plan.held.map((held) => held.action)].find(
      (action) => action.key === `model/${model}`,
    );
    const lacking = found ? "a file of it is missing or damaged" : "not in the model cache";
    return finding("Present", "False", found ? "Incomplete" : "Absent", planned?.message ?? lacking);
  }
}

function verified({ inventory }: Observed, cached: CachedModel | undefined): Finding {
  if (cached && cached.damage !== null) return finding("Verified", "False", "Damaged", cached.damage);
  if (!cached?.complete) return finding("Verified", "Unknown", "Absent", "there is nothing to verify");
  const ours = inventory.state === "known" && inventory.value.find((entry) => holdsFilesOf(entry, cached));
  if (!ours) return finding("Verified", "Unknown", "NotOurs", "another program stored it; nobody checked it here");
  const done = ours.files.some(({ found }) => found) ? "found it in the cache" : "stored it";
  return finding("Verified", "True", "ChecksumMatched", `its SHA-256 was checked when this gateway ${done}`);
}

function applied(id: string, { desired, observed, plan }: StatusInput, cached: CachedModel | undefined): Finding {
  if (!cached?.complete) return finding("Applied", "False", "Absent", "settings apply once the model is there");
  const problem = plan.findings.get(cached.id);
  if (problem !== undefined) return finding("Applied", "False", reasonOf(cached.id, desired, observed), problem);
  if (observed.preset.state === "unknown" || observed.router.models.state === "unknown") {
    return finding("Applied", "Unknown", "NotObserved", "the router or its preset cannot be read");
  }
  const preset = observed.preset.value;
  const asked = desired.models.find((model) => model.id.toLowerCase() === id.toLowerCase())?.ctxSize;
  const wanted =
    asked === undefined ? presetCtxSize(preset, cached.upstreamId) : runnableContext(asked, cached.nCtxTrain);
  const listed = observed.router.models.value.find((model) => model.id === cached.upstreamId);
  if (!listed) return finding("Applied", "False", "NotListed", "the router does not list it yet");
  const current = observed.router.loadedPreset === preset.text && registeredCtxSize(listed) === wanted;
  const size = wanted === null ? "the router's own context size" : `a context of ${wanted} tokens`;
  const trained = cached.nCtxTrain;
  const capped =
    wanted !== null && trained !== null && wanted > trained
      ? `; the model was trained for ${trained} and gets no more`
      : "";
  const raised = asked !== undefined && asked !== wanted ? `; ${asked} is less than the engine can run` : "";
  return current
    ? finding("Applied", "True", "InForce", `${size} is in force${capped}${raised}`)
    : finding("Applied", "False", "Pending", `${size} is not in force yet`);
}

function loaded({ observed: { router }, requests }: StatusInput, cached: CachedModel | undefined): Finding {
  if (router.models.state === "unknown") return finding("Loaded", "Unknown", "NotObserved", router.models.why);
  const listed = router.models.value.find((model) => cached !== undefined && model.id === cached.upstreamId);
  if (!listed) return finding("Loaded", "False", "NotListed", "the router does not list it");
  if (listed.value === "loaded")
    return finding("Loaded", "True", "Loaded", `with ${listed.nCtx ?? "unknown"} tokens of context`);
  const failing = listed.value === "loading" ? null : loadFailing(listed.id, requests);
  if (failing) return failing;
  if (listed.failed) return finding("Loaded", "False", "LoadFailed", "its last load failed");
  return finding(
    "Loaded",
    "False",
    listed.value === "loading" ? "Loading" : "Unloaded",
    `the router says: ${listed.value}`,
  );
}

/** Gives findings their times: one that had the same status before keeps its own. */
export function toConditions(
  findings: readonly Finding[],
  before: readonly Condition[],
  generation: number,
  now: number,
): Condition[] {
  return findings.map((found) => {
    const earlier = before.find((condition) => condition.type === found.type);
    const lastTransitionTime =
      earlier?.status === found.status ? earlier.lastTransitionTime : new Date(now).toISOString();
    return { ...found, observedGeneration: generation, lastTransitionTime };
  });
}
