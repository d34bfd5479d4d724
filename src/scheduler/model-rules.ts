// What the document sets for each model, by the router's ids.
import { keepAliveMs } from "../core/keep-alive.ts";
import type { Desired, DesiredModel } from "../desired/document/document.ts";
import { findCached } from "../plan/find-model.ts";
import type { CachedModel } from "../plan/observed.ts";
import type { ModelRules } from "./state/world.ts";

/** There are no dates beyond it. */
const longestKeepMs = 100 * 365 * 86_400_000;

export function keepTime(ms: number): number {
  return ms > longestKeepMs ? Number.POSITIVE_INFINITY : ms;
}

/** Made again only for another document or cache: it is asked for at every change of the world. */
export function modelRules(
  document: () => Desired,
  cached: () => readonly CachedModel[],
): () => ReadonlyMap<string, ModelRules> {
  let [from, models]: [Desired | null, readonly CachedModel[]] = [null, []];
  let rules: ReadonlyMap<string, ModelRules> = new Map();
  return () => {
    if (from === document() && models === cached()) return rules;
    [from, models] = [document(), cached()];
    return (rules = new Map(from.models.flatMap((model) => entriesOf(model, models))));
  };
}

function entriesOf(model: DesiredModel, cached: readonly CachedModel[]): [string, ModelRules][] {
  const { keepAlive, maxQueue, priority } = model;
  if (keepAlive === undefined && maxQueue === undefined && priority === undefined) return [];
  const id = findCached(cached, model.id)?.upstreamId;
  const keepMs = keepAlive === undefined ? null : keepAliveMs(keepAlive);
  const rules = {
    ...(keepMs !== null && { keepAliveMs: keepTime(keepMs) }),
    ...(maxQueue !== undefined && { queueLimit: maxQueue }),
    ...(priority !== undefined && { priority }),
  };
  return id === undefined ? [] : [[id, rules]];
}
