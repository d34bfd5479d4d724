// Healthy of the gateway, what is wrong with single models, and Ready of each. One bad model takes no other's readiness, nor the
// gateway's: chats may be served meanwhile. Pure.
import { cachedIn, findListed } from "../plan/find-model.ts";
import { type Finding, failed, finding, ofKey, reasonOf, reported, type StatusInput } from "./finding.ts";
import { fetchFailure, loadFailing } from "./model-findings.ts";

/** Models in a message. */
const mostNamed = 10;

/** `serving`: why no chat can be served. */
export function healthy(serving: Finding | undefined, parts: readonly Finding[], input: StatusInput): Finding {
  const wrong = [
    ...(serving ? [serving] : []),
    ...parts.filter((part) => isWrong(part, input)),
    ...failingModels(input),
  ];
  const [first] = wrong;
  if (!first) return finding("Healthy", "NothingFails");
  return reported("Healthy", "False", first.reason, wrong.map(({ message }) => message).join(" "));
}

/** With these, what is served goes on, and something of a person's has been put aside. */
const asides: ReadonlySet<string> = new Set(["FilesSetAside", "WriteBackFailed"]);

function isWrong({ type, status, reason }: Finding, { desired, plan }: StatusInput): boolean {
  if (asides.has(reason)) return true;
  if (type === "SourceValid" || type === "StateWritable") return status === "False";
  if (type !== "Stalled") return false;
  // Stalled names its first action; models that do not come are named one by one.
  const named = new Set(desired.models.map(({ id }) => `model/${id}`));
  return plan.held.some(({ why, action }) => why === "stalled" && !named.has(action.key));
}

function failingModels(input: StatusInput): Finding[] {
  const found = input.desired.models.flatMap(({ id }) => {
    const problem =
      fetchProblem(id, input) ?? loadProblem(id, input) ?? sizeProblem(id, input) ?? settingProblem(id, input);
    return problem ? [`${id}: ${problem.message}`] : [];
  });
  if (found.length === 0) return [];
  const more = found.length > mostNamed ? ` (and ${found.length - mostNamed} more)` : "";
  return [finding("Healthy", "ModelsFail", found.slice(0, mostNamed).join(" ") + more)];
}

/** Why its files do not come. A new try ends it with its first bytes: until then nothing is better than before. */
function fetchProblem(id: string, { running, plan, backoff }: StatusInput): Finding | undefined {
  const key = `model/${id}`;
  const crowded = ofKey(plan.held, key).find(({ why }) => why === "room");
  if (crowded) return finding("Present", "DiskFull", crowded.action.message);
  const failure = fetchFailure(id, backoff);
  const isComing = ofKey(running, key).some(({ progress }) => (progress?.completed ?? 0) > 0);
  return failure && !isComing ? failed("Present", failure) : undefined;
}

/** Why it cannot be loaded. A new try that is under way ends it when it succeeds. */
function loadProblem(id: string, { observed, requests }: StatusInput): Finding | undefined {
  const upstreamId = cachedIn(observed, id)?.upstreamId;
  const model = upstreamId === undefined ? undefined : findListed(observed.router.models, upstreamId);
  if (!model || model.value === "loaded") return undefined;
  return loadFailing(model.id, requests) ?? (model.failed ? finding("Loaded", "LoadFailed") : undefined);
}

/** Why it can never be loaded. */
function sizeProblem(id: string, { observed, fits }: StatusInput): Finding | undefined {
  const cached = cachedIn(observed, id);
  const fact = fits.get(cached?.complete ? cached.upstreamId : id);
  if (fact?.reason !== "TooLarge" && fact?.reason !== "Refused") return undefined;
  return finding("Fits", fact.reason, fact.message);
}

function settingProblem(id: string, input: StatusInput): Finding | undefined {
  const cached = cachedIn(input.observed, id);
  const problem = input.plan.findings.get(cached?.id ?? "");
  return cached && problem !== undefined ? finding("Applied", reasonOf(cached.id, input), problem) : undefined;
}

/** `own`: what is found of the model; `serving`: why no chat can be served. */
export function modelReady(
  id: string,
  own: readonly Finding[],
  serving: Finding | undefined,
  input: StatusInput,
): Finding {
  const of = (type: string): Finding | undefined => own.find((each) => each.type === type);
  const [present, loaded] = [of("Present"), of("Loaded")];
  // It answers while its router is silent, and while other files or settings for it cannot be had.
  if (loaded?.status === "True") return finding("ModelReady", "Loaded", loaded.message);
  const isHere = present?.status === "True";
  const why = isHere
    ? (loadProblem(id, input) ?? sizeProblem(id, input) ?? serving ?? unlisted(loaded))
    : (fetchProblem(id, input) ?? present);
  if (!why) return finding("ModelReady", "OnDemand");
  return reported("ModelReady", why.status === "Unknown" ? "Unknown" : "False", why.reason, why.message);
}

/** A model that the router does not list, or whose list cannot be read, cannot be loaded. */
function unlisted(loaded: Finding | undefined): Finding | undefined {
  return loaded && ["NotListed", "NotObserved"].includes(loaded.reason) ? loaded : undefined;
}
