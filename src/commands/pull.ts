// Pulls a model: names it in the document and follows the loop until the router lists it.
import type { Catalog } from "../catalog/catalog.ts";
import { type ErrorCode } from "../core/error-catalog.ts";
import { GatewayError, toGatewayError } from "../core/errors.ts";
import { longestTimerMs, steadyNow } from "../core/steady.ts";
import type { Desired } from "../desired/document/document.ts";
import type { DesiredStore } from "../desired/store.ts";
import type { Executor } from "../execute/executor.ts";
import type { HubClient } from "../hub/client.ts";
import { backoffKey, type Progress, withRetry } from "../plan/actions.ts";
import { cachedIn } from "../plan/find-model.ts";
import type { Pass } from "../reconcile/loop.ts";
import { type Call, failureOf, suspended, untilInForce, type WaitDeps } from "./in-force.ts";
import { namesInDocument } from "./naming.ts";
import { type Claim, createClaims } from "./pull-claims.ts";
import { modelToPull } from "./pull-name.ts";
import { createPullPatience, type PullTimes } from "./pull-patience.ts";

export interface PullDeps extends WaitDeps, Pick<PullTimes, "pullPatienceMs"> {
  readonly store: DesiredStore;
  readonly catalog: Catalog;
  readonly executor: Pick<Executor, "follow" | "running">;
  readonly hub: HubClient;
}

export interface PullCall extends Call {
  /** The model stays in the document when the client has left. */
  readonly keep: boolean;
}

/** Progress of a pull. */
export type PullNews =
  | { readonly kind: "waiting"; readonly message: string }
  | { readonly kind: "progress"; readonly progress: Progress }
  /** The files are present; the router reloads. */
  | { readonly kind: "fetched" }
  /** A try failed, another one follows. */
  | { readonly kind: "retrying"; readonly message: string };

type Tell = (news: PullNews) => void;

/** How long the router may take to list a model whose files are present, in ms. */
const listedWithinMs = 60_000;
/** After these the model stays in the document. */
const noted: ReadonlySet<ErrorCode> = new Set(["suspended", "shutting_down"]);

/** Resolves once the router lists it. A pull that fails or is left leaves the document as it was; with `keep` it waits instead. */
export function pullEdit(deps: PullDeps) {
  const claims = createClaims(deps.store);
  return async (name: string, { keep, ...call }: PullCall, tell: Tell): Promise<{ readonly id: string }> => {
    const id = await modelToPull(deps, name, call.signal);
    const claim = await claims.claim(id, (document) => nameInDocument(document, id, deps.loop.last()), call);
    await untilFetched(deps, claim, { ...call, keep }, tell).catch(async (error: unknown) => {
      if (noted.has(toGatewayError(error).code) || (keep && call.signal.aborted)) claim.keep();
      else await claim.giveUp();
      throw error;
    });
    claim.keep();
    tell({ kind: "fetched" });
    // With the preset that it is to have: a model of its own context size is not listed without it.
    const { generation, key } = claim;
    const test = (pass: Pass): boolean => isListed(pass, key);
    const listed = await untilInForce(deps, { generation, call, timeoutMs: listedWithinMs, test });
    return { id: cachedIn(listed.observed, key)?.id ?? key };
  };
}

function nameInDocument({ models }: Desired, id: string, pass: Pass | null): string | undefined {
  const direct = models.find((model) => model.id.toLowerCase() === id.toLowerCase());
  if (direct) return direct.id;
  const cached = pass && cachedIn(pass.observed, id);
  return cached ? namesInDocument(models, cached, pass)[0] : undefined;
}

/** Resolves once all files of the model are in the cache, and nothing is at work on them. */
async function untilFetched(deps: PullDeps, { key, generation }: Claim, call: PullCall, tell: Tell): Promise<void> {
  const { loop, executor } = deps;
  const actionKey = `model/${key}`;
  const patience = createPullPatience(steadyNow, deps.pullPatienceMs);
  /** For its client, which does not wait for days for outside causes. */
  let outside: GatewayError | null = null;
  let timer: NodeJS.Timeout | undefined;
  const tellOnce = withoutRepeats(tell);
  const unfollow = executor.follow(actionKey, {
    progress: (_action, progress) => {
      patience.progressed(progress);
      tellOnce({ kind: "progress", progress });
    },
    settled: ({ action, error }) => {
      if (!error || action.kind === "model.remove" || error.code === "cancelled") return;
      patience.failed();
      if (error.reaction !== "wait" || call.keep) return;
      outside = error;
      clearTimeout(timer);
      timer = setTimeout(loop.wake, Math.min(patience.leftMs(), longestTimerMs));
    },
  });
  try {
    const underWay = executor.running().find(({ action }) => action.key === actionKey);
    if (underWay?.progress) tellOnce({ kind: "progress", progress: underWay.progress });
    // An earlier failure is retried: this call requests it.
    if (isHeldBack(deps, actionKey)) loop.retry();
    await loop.waitFor({
      generation,
      signal: call.signal,
      timeoutMs: Number.MAX_SAFE_INTEGER,
      test: (pass) => {
        const own = pass.running.find(({ action }) => action.key === actionKey);
        // A running try ends by itself.
        if (outside && !own && patience.leftMs() === 0) throw outside;
        throwIfGivenUp(deps, pass, key, call.keep);
        const { cache } = pass.observed;
        if (cache.state === "unknown") {
          tellOnce({ kind: "waiting", message: cache.why });
          return false;
        }
        const held = pass.plan.held.find(({ action }) => action.key === actionKey);
        const failure = held?.why === "backoff" && loop.backoff().get(backoffKey(held.action));
        if (failure) tellOnce({ kind: "retrying", message: withRetry(failure, steadyNow()) }, failure.until);
        if (held?.why === "room") tellOnce({ kind: "waiting", message: held.action.message });
        if (held?.why === "writer") tellOnce({ kind: "waiting", message: `${held.action.message}: ${held.because}` });
        if (own?.startedAt === null)
          tellOnce({ kind: "waiting", message: `${own.action.message}: waits for its turn` });
        return !own && cachedIn(pass.observed, key)?.complete === true && !isBeingRemoved(pass, key);
      },
    });
  } finally {
    clearTimeout(timer);
    unfollow();
  }
}

/** Passes on what differs from the last report (by default in its message): each pass finds the same again. */
function withoutRepeats(tell: Tell): (news: Exclude<PullNews, { kind: "fetched" }>, key?: unknown) => void {
  let last: unknown = null;
  return (news, key = news.kind === "progress" ? null : news.message) => {
    if (key === null || key !== last) tell(news);
    last = key;
  };
}

function isHeldBack({ loop }: PullDeps, actionKey: string): boolean {
  return (["model.pull", "model.import"] as const).some((kind) =>
    loop.backoff().has(backoffKey({ kind, key: actionKey })),
  );
}

/** Throws if the model will not be pulled. */
function throwIfGivenUp({ loop }: PullDeps, { plan, desired }: Pass, key: string, keep: boolean): void {
  if (!desired.document.models.some(({ id }) => id === key))
    throw new GatewayError("cancelled", `${key} was taken out of the document`);
  for (const { action, why } of plan.held) {
    if (action.key !== `model/${key}`) continue;
    if (why === "suspended") throw suspended(action.message);
    // It may take days until there is disk space, too long for a client.
    if (why === "room" && !keep) throw new GatewayError("disk_full", action.message);
    const failure = why === "stalled" ? failureOf(loop, action) : null;
    if (failure) throw failure;
  }
}

/** A removal was running when the model was requested again: it is pulled afterwards. */
function isBeingRemoved(pass: Pass, key: string): boolean {
  const cached = cachedIn(pass.observed, key);
  return pass.running.some(
    ({ action }) => action.kind === "model.remove" && cached !== undefined && action.model === cached.id,
  );
}

function isListed(pass: Pass, key: string): boolean {
  const { models } = pass.observed.router;
  const cached = cachedIn(pass.observed, key);
  return models.state === "known" && models.value.some(({ id }) => id === cached?.upstreamId);
}
