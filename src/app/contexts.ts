// Contexts that the document leaves to the gateway, chosen in the background of the passes. A choice is kept for the model's files and
// settings, the engine, the limits and the pinned models: none is made twice, also where none could be had.
import { createHash } from "node:crypto";
import { areSameLimits } from "../memory/auto-context.ts";
import { type Candidate, chooseContext, isSharing } from "../memory/context-choice.ts";
import type { Memory } from "../memory/memory.ts";
import { findCached } from "../plan/find-model.ts";
import { isChosenFor } from "../plan/load-record.ts";
import { effectiveValues } from "../plan/preset-file.ts";
import { filesIdentity } from "../plan/rollback.ts";
import type { Pass } from "../reconcile/loop.ts";
import type { Base } from "./events.ts";
import type { State } from "./state.ts";

type Parts = Base & Pick<State, "loads"> & { readonly memory: Pick<Memory, "need" | "needFor" | "why" | "limits"> };

export function chooseContexts({ events, warn, loads, memory }: Parts) {
  let last: Pass | null = null;
  let isDue = false;
  let isClosed = false;
  let work: Promise<void> | null = null;
  /** By the router's ids: models with responses in flight. */
  const inUse = new Set<string>();

  function wake(): void {
    if (isClosed || !last || last.plan.autos.size === 0) return;
    isDue = true;
    work ??= run()
      .catch((error: unknown) => warn("contexts could not be chosen", { error: String(error) }))
      .finally(() => {
        work = null;
      });
  }

  async function run(): Promise<void> {
    while (isDue && last) {
      isDue = false;
      const all = candidatesIn(last);
      // First those that stay: what they choose is taken from the others.
      const chosen = all.filter(({ isChosen }) => isChosen).toSorted((a, b) => Number(b.isPinned) - Number(a.isPinned));
      for (const each of chosen) await update(each, all, last.observed.router.build);
    }
  }

  async function update(candidate: Candidate, all: readonly Candidate[], build: string): Promise<void> {
    const { upstreamId } = candidate.model;
    const pinned = all.filter(({ isPinned, model }) => isPinned && model.upstreamId !== upstreamId);
    const limits = memory.limits();
    const beside = pinned.map((each) => [identityOf(each), isSharing(candidate, each) || sizeOf(each)]);
    const key = hashOf([build, identityOf(candidate), beside]);
    const known = loads.chosen(upstreamId);
    // What other programs take changes all the time, and a reload would cut a response that is longer than --drain-timeout.
    const isSame = isChosenFor(known, candidate.values) && known.key === key;
    if (isSame && (inUse.has(upstreamId) || areSameLimits(known.limits, limits))) return;
    const found = await chooseContext(candidate, pinned, memory, sizeOf);
    if (isClosed || found === undefined) return;
    loads.choose(upstreamId, { ...found, key, settings: candidate.values, limits: Object.fromEntries(limits) });
    // A plan waits for the choice, if not for another number.
    if (!isSame || known.tokens !== found.tokens || known.why !== found.why) events.emit("changed");
  }

  const sizeOf = ({ model }: Candidate): number | null => loads.chosen(model.upstreamId)?.tokens ?? null;

  events.on("passed", (pass) => {
    last = pass;
    wake();
  });
  events.on("memoryKnown", wake);
  events.on("modelInUse", (id) => void inUse.add(id));
  events.on("modelIdle", (id) => void inUse.delete(id));
  events.on("retried", loads.forgiveChoices);
  return {
    /** What is under way is not kept: its questions are cancelled, which reads like a refusal. */
    close: (): void => {
      isClosed = true;
    },
  };
}

function candidatesIn({ desired: { document }, observed: { cache, preset }, plan }: Pass): Candidate[] {
  if (cache.state === "unknown" || preset.state === "unknown") return [];
  return document.models.flatMap(({ id, pinned = false }) => {
    const model = findCached(cache.value.models, id);
    if (!model?.complete) return [];
    const asked = plan.autos.get(model.upstreamId);
    const values = asked ?? effectiveValues(preset.value, model.upstreamId);
    return [{ model, values, isChosen: asked !== undefined, isPinned: pinned }];
  });
}

function identityOf({ model, values, isPinned }: Candidate): unknown {
  return [model.upstreamId, filesIdentity(model), isPinned, [...values].toSorted(([a], [b]) => (a < b ? -1 : 1))];
}

function hashOf(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value)).digest("hex").slice(0, 32);
}
