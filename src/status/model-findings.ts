// What is true of one model. Pure.
import { runnableContext } from "../core/context-size.ts";
import type { BackoffEntry } from "../plan/actions.ts";
import { cachedIn, findListed } from "../plan/find-model.ts";
import { type CachedModel, isOfRepo, type Observed, type RouterModel } from "../plan/observed.ts";
import { presetCtxSize } from "../plan/preset-file.ts";
import { holdsFilesOf } from "../plan/removals.ts";
import { registeredCtxSize } from "../plan/wanted-preset.ts";
import {
  type Finding,
  failed,
  failureOf,
  finding,
  ofKey,
  type RequestFacts,
  reasonOf,
  type StatusInput,
} from "./finding.ts";

/** Present, Verified, Applied and Loaded of one model, which the document names or the cache holds. */
export function modelFindings(id: string, input: StatusInput): Finding[] {
  const { observed } = input;
  const cached = cachedIn(observed, id);
  return [
    present(id, input, cached),
    verified(observed, cached),
    applied(id, input, cached),
    loaded(input, cached),
    ...fits(id, input, cached),
  ];
}

function present(
  id: string,
  { observed: { cache }, running, plan, backoff }: StatusInput,
  found: CachedModel | undefined,
): Finding {
  if (cache.state === "unknown") return finding("Present", "NotObserved", cache.why);
  if (!found && isOfRepo(id, cache.value.unreadable))
    return finding("Present", "NotObserved", "Its folder in the model cache cannot be read.");
  if (found?.complete)
    return finding(
      "Present",
      "Cached",
      `${found.files.length} file(s) with ${found.bytes} bytes are in the model cache.`,
    );
  const key = `model/${id}`;
  const [active] = ofKey(running, key);
  if (active?.startedAt === null)
    return finding("Present", "Queued", `${active.action.message}: waits for other actions.`);
  if (active) return finding("Present", "Pulling", active.action.message);
  const held = ofKey(plan.held, key);
  const crowded = held.find(({ why }) => why === "room");
  if (crowded) return finding("Present", "DiskFull", crowded.action.message);
  const awaited = held.find(({ why }) => why === "writer");
  if (awaited) return finding("Present", "WaitingForWriter", `${awaited.action.message}: ${awaited.because}.`);
  const failure = fetchFailure(id, backoff);
  if (failure) return failed("Present", failure);
  const planned = ofKey(plan.actions, key)[0] ?? held[0]?.action;
  return found
    ? finding("Present", "Incomplete", planned?.message ?? "A file of it is missing or damaged.")
    : finding("Present", "Absent", planned?.message ?? "It is not in the model cache.");
}

/** Of the pull or import that its document entry asks for. */
export function fetchFailure(id: string, backoff: StatusInput["backoff"]): BackoffEntry | undefined {
  const key = `model/${id}`;
  return failureOf(backoff, "model.pull", key) ?? failureOf(backoff, "model.import", key);
}

function verified({ inventory }: Observed, cached: CachedModel | undefined): Finding {
  if (cached && cached.damage !== null) return finding("Verified", "Damaged", cached.damage);
  if (!cached?.complete) return finding("Verified", "Absent");
  const ours = inventory.find((entry) => holdsFilesOf(entry, cached));
  if (!ours) return finding("Verified", "NotOurs");
  const done = ours.files.some(({ found }) => found) ? "found it in the cache" : "stored it";
  return finding("Verified", "ChecksumMatched", `Its SHA-256 was checked when this gateway ${done}.`);
}

function applied(id: string, input: StatusInput, cached: CachedModel | undefined): Finding {
  const { desired, observed, plan, backoff } = input;
  if (!cached?.complete) return finding("Applied", "Absent");
  // Another source or revision that cannot be had: the files of before are still in force.
  const failure = fetchFailure(id, backoff);
  if (failure) return failed("Applied", failure);
  const problem = plan.findings.get(cached.id);
  if (problem !== undefined) return finding("Applied", reasonOf(cached.id, input), problem);
  if (observed.preset.state === "unknown" || observed.router.models.state === "unknown")
    return finding("Applied", "NotObserved");
  const preset = observed.preset.value;
  const given = desired.models.find((model) => model.id === id)?.ctxSize;
  if (given === "auto" && !observed.loads.contexts.has(cached.upstreamId))
    return finding("Applied", "Pending", "The largest context that fits is being looked for.");
  const asked = given === "auto" ? undefined : given;
  const wanted =
    asked === undefined ? presetCtxSize(preset, cached.upstreamId) : runnableContext(asked, cached.nCtxTrain);
  const listed = findListed(observed.router.models, cached.upstreamId);
  if (!listed) return finding("Applied", "NotListed");
  const current = observed.router.loadedPreset === preset.text && registeredCtxSize(listed) === wanted;
  const size = wanted === null ? "the router's own context size" : `a context of ${wanted} tokens`;
  if (!current) return finding("Applied", "Pending", `It does not run with ${size} yet.`);
  const trained = cached.nCtxTrain;
  const capped =
    wanted !== null && trained !== null && wanted > trained
      ? `, of which a request gets no more than the ${trained} that the model was trained for`
      : "";
  const raised = asked !== undefined && asked !== wanted ? `; ${asked} is less than the engine can run` : "";
  const chosen = given === "auto" ? ", the largest that fits beside what is pinned" : "";
  return finding("Applied", "InForce", `It runs with ${size}${chosen}${capped}${raised}.`);
}

function loaded({ observed: { router }, requests }: StatusInput, cached: CachedModel | undefined): Finding {
  if (router.models.state === "unknown") return finding("Loaded", "NotObserved", router.models.why);
  const listed = cached && findListed(router.models, cached.upstreamId);
  if (!listed) return finding("Loaded", "NotListed");
  if (listed.value === "loaded") return loadedNow(listed, requests);
  if (listed.value === "loading") return finding("Loaded", "Loading");
  const failing = loadFailing(listed.id, requests);
  if (failing) return failing;
  if (listed.failed) return finding("Loaded", "LoadFailed");
  return finding("Loaded", "Unloaded", `The router reports it as ${listed.value}.`);
}

function loadedNow({ id, nCtx }: RouterModel, { firstTokens }: RequestFacts): Finding {
  const ms = firstTokens.get(id) ?? null;
  if (ms === null) return finding("Loaded", "Verifying");
  return finding(
    "Loaded",
    "Loaded",
    `It is loaded with ${nCtx ?? "unknown"} tokens of context. Its first token took ${ms} ms.`,
  );
}

/** What is known of loads that failed, of a model that is not loaded. */
export function loadFailing(upstreamId: string, { failing }: RequestFacts): Finding | undefined {
  const last = failing.get(upstreamId);
  if (!last) return undefined;
  const loads = last.failures === 1 ? "Its last load" : `Each of its last ${last.failures} loads`;
  const until = `The next try is not before ${new Date(last.until).toISOString()}.`;
  return finding("Loaded", "LoadFailing", `${loads} failed: ${last.message.replace(/\.$/, "")}. ${until}`);
}

/** Of a model that the document names. */
function fits(id: string, { desired, fits: facts }: StatusInput, cached: CachedModel | undefined): Finding[] {
  const isNamed = desired.models.some((model) => model.id === id);
  const fact = facts.get(cached?.complete ? cached.upstreamId : id);
  if (!isNamed) return [];
  return [fact ? finding("Fits", fact.reason, fact.message) : finding("Fits", "Absent")];
}
