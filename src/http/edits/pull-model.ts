// Pulls a model: names it in the document and follows what the loop makes of that, until the router lists it.
import { type ErrorCode, GatewayError, toGatewayError } from "../../core/errors.ts";
import { steadyNow } from "../../core/steady.ts";
import type { Desired } from "../../desired/document.ts";
import type { DesiredStore } from "../../desired/store.ts";
import type { Executor } from "../../execute/executor.ts";
import type { HubClient } from "../../hub/client.ts";
import { type CachedModel, findCached } from "../../plan/observed.ts";
import type { Pass } from "../../reconcile/loop.ts";
import type { Catalogue } from "../catalogue.ts";
import type { Edits, PullCall, PullNews } from "./edits.ts";
import { failureOf, throwIfStuck, type WaitDeps, waitFor } from "./in-force.ts";
import { namesInDocument } from "./naming.ts";
import { type Claim, createClaims } from "./pull-claims.ts";
import { requireMeant } from "./pull-meaning.ts";
import { modelToPull } from "./pull-name.ts";

export interface PullDeps extends WaitDeps {
  readonly store: DesiredStore;
  readonly catalogue: Catalogue;
  readonly executor: Pick<Executor, "follow" | "running">;
  readonly hub: HubClient;
}

/** How long the router may take to list a model whose files are there, in ms. */
const listedWithinMs = 60_000;
/** What waits for the world to change is given up for its caller after so many tries: nobody waits for days. */
const patience = 3;
/** Unless a part of it is here: then only after so long, in ms, without a byte more. A router at home takes a minute to restart. */
const patienceMs = 10 * 60_000;
/** After these the document goes on wanting the model. */
const noted: ReadonlySet<ErrorCode> = new Set(["suspended", "shutting_down"]);

export function pullEdit(deps: PullDeps): Edits["pull"] {
  const claims = createClaims(deps.store);
  return async (name, { keep, ...call }, tell) => {
    const id = await modelToPull(deps, name, call.signal);
    await requireMeantHere(deps, id, call.signal);
    const claim = await claims.claim(id, (document) => nameInDocument(document, id, deps.loop.last()), call.by);
    const pass = await untilFetched(deps, claim, { ...call, keep }, tell).catch(async (error: unknown) => {
      if (noted.has(toGatewayError(error).code) || (keep && call.signal.aborted)) claim.keep();
      else await claim.giveUp();
      throw error;
    });
    claim.keep();
    if (!isListed(pass, claim.key)) {
      tell({ kind: "fetched" });
      await waitFor(deps, {
        generation: claim.generation,
        call,
        timeoutMs: listedWithinMs,
        test: (next) => {
          throwIfStuck(deps, next, ["preset", "router"]);
          return isListed(next, claim.key);
        },
      });
    }
    return { id: cachedIn(deps.loop.last() ?? pass, claim.key)?.id ?? claim.key };
  };
}

/** What the document names by this id is settled; a model that is only here may be another one than the hub has by it. */
async function requireMeantHere({ store, loop, hub }: PullDeps, id: string, signal: AbortSignal): Promise<void> {
  const pass = loop.last();
  const cached = pass && cachedIn(pass, id);
  const isNamed = store.current().document.models.some((model) => model.id.toLowerCase() === id.toLowerCase());
  if (cached && !isNamed) await requireMeant(hub, id, cached, signal);
}

function nameInDocument({ models }: Desired, id: string, pass: Pass | null): string | undefined {
  const direct = models.find((model) => model.id.toLowerCase() === id.toLowerCase());
  if (direct) return direct.id;
  const cached = pass && cachedIn(pass, id);
  return cached ? namesInDocument(models, cached, pass)[0] : undefined;
}

/** Resolves with a pass that finds all files of the model in the cache, and nothing at work on them. */
async function untilFetched(
  deps: PullDeps,
  { key, generation }: Claim,
  call: PullCall,
  tell: (news: PullNews) => void,
): Promise<Pass> {
  const { loop, executor } = deps;
  const actionKey = `model/${key}`;
  let failures = 0;
  /** When (ms) the last bytes came in; null: none did. */
  let gainedAt: number | null = null;
  let completed = 0;
  const isGivenUp = (): boolean =>
    !call.keep && (gainedAt === null ? failures >= patience : steadyNow() - gainedAt > patienceMs);
  let final: GatewayError | null = null;
  let told: string | null = null;
  /** Not once more for each look at the world. */
  const tellWaiting = (message: string): void => {
    if (told !== message) tell({ kind: "waiting", message });
    told = message;
  };
  const unfollow = executor.follow(actionKey, {
    progress: (_action, progress) => {
      told = null;
      if (progress.completed > completed) gainedAt = steadyNow();
      completed = progress.completed;
      tell({ kind: "progress", progress });
    },
    settled: ({ action, error }) => {
      if (!error || action.kind === "model.remove" || error.code === "cancelled") return;
      failures++;
      if (error.reaction === "wait" && isGivenUp()) final = error;
      else if (error.reaction !== "stall") tell({ kind: "retrying", message: error.message });
    },
  });
  try {
    const underWay = executor.running().find(({ action }) => action.key === actionKey);
    if (underWay?.progress) tell({ kind: "progress", progress: underWay.progress });
    // What failed before is tried again: somebody asks for it.
    if (isHeldBack(deps, actionKey)) loop.retry();
    return await waitFor(deps, {
      generation,
      call,
      timeoutMs: Number.MAX_SAFE_INTEGER,
      test: (pass) => {
        if (final) throw final;
        throwIfGivenUp(deps, pass, key, call.keep);
        const { cache } = pass.observed;
        if (cache.state === "unknown") {
          tellWaiting(cache.why);
          return false;
        }
        const own = pass.running.find(({ action }) => action.key === actionKey);
        const crowded = pass.plan.held.find(({ action, why }) => why === "room" && action.key === actionKey);
        if (crowded) tellWaiting(crowded.action.message);
        if (own?.startedAt === null) tellWaiting(`${own.action.message}: waits for its turn`);
        return !own && cachedIn(pass, key)?.complete === true && !isBeingRemoved(pass, key);
      },
    });
  } finally {
    unfollow();
  }
}

function isHeldBack({ loop }: PullDeps, actionKey: string): boolean {
  return ["model.pull", "model.import"].some((kind) => loop.backoff().has(`${kind} ${actionKey}`));
}

/** Throws where the model will not come. */
function throwIfGivenUp({ loop }: PullDeps, { plan, desired }: Pass, key: string, keep: boolean): void {
  if (!desired.document.models.some(({ id }) => id === key))
    throw new GatewayError("cancelled", `${key} was taken out of the document`);
  for (const { action, why } of plan.held) {
    if (action.key !== `model/${key}`) continue;
    if (why === "suspended")
      throw new GatewayError("suspended", `noted, but not made: the document says suspend (${action.message})`);
    // It may take days until there is room, and nobody waits for so long.
    if (why === "room" && !keep) throw new GatewayError("disk_full", action.message);
    const failure = why === "stalled" ? failureOf(loop, action) : null;
    if (failure) throw failure;
  }
}

function cachedIn({ observed: { cache } }: Pass, key: string): CachedModel | undefined {
  return cache.state === "known" ? findCached(cache.value.models, key) : undefined;
}

/** A removal that was under way when the model was asked for again: it is pulled once that is through. */
function isBeingRemoved(pass: Pass, key: string): boolean {
  const cached = cachedIn(pass, key);
  return pass.running.some(
    ({ action }) => action.kind === "model.remove" && cached !== undefined && action.model === cached.id,
  );
}

/** With the preset that it is to have: a model of its own context size is not listed without it. */
function isListed(pass: Pass, key: string): boolean {
  const { preset, router } = pass.observed;
  const cached = cachedIn(pass, key);
  const open = [...pass.plan.actions, ...pass.plan.held.map((held) => held.action)];
  return (
    cached !== undefined &&
    preset.state === "known" &&
    router.phase === "ready" &&
    router.loadedPreset === preset.value.text &&
    !open.some((action) => action.kind === "preset.write") &&
    router.models.state === "known" &&
    router.models.value.some(({ id }) => id === cached.upstreamId)
  );
}
