// What each model of a repository on the hub would take of memory, with the settings that every model has.
import type { HubModels } from "../../schemas/admin.ts";
import { type Selection, selectFiles, tagsOf } from "../cache/layout/select.ts";
import { GatewayError, toGatewayError } from "../core/errors.ts";
import { unlessLeft } from "../core/unless-left.ts";
import type { HubClient } from "../hub/client.ts";
import { listedModel } from "../memory/hub-models.ts";
import type { HubNeeds } from "../memory/hub-needs.ts";
import type { Memory } from "../memory/memory.ts";
import { fitsIn, needBody } from "../memory/need.ts";
import { questionOf } from "../memory/question.ts";
import { effectiveValues } from "../plan/preset-file.ts";
import type { Loop } from "../reconcile/loop.ts";

export interface HubMemoryDeps {
  readonly hub: Pick<HubClient, "resolveRevision" | "listTree">;
  readonly hubNeeds: Pick<HubNeeds, "need">;
  readonly memory: Pick<Memory, "limits">;
  readonly loop: Pick<Loop, "last">;
}

/** ms for all models of a repository: what is known by then is kept for the next request. */
const patienceMs = 20_000;

/** Errors: `hub_*`, `cancelled`. */
export async function hubMemory(
  { hub, hubNeeds, memory, loop }: HubMemoryDeps,
  repo: string,
  left: AbortSignal,
): Promise<HubModels> {
  const commit = await hub.resolveRevision(repo, "main", left);
  const tree = await hub.listTree(repo, commit, left);
  const late = AbortSignal.any([left, AbortSignal.timeout(patienceMs)]);
  const preset = loop.last()?.observed.preset;
  const values = preset?.state === "known" ? effectiveValues(preset.value, "*") : new Map<string, string>();

  async function needOf(selection: Selection) {
    const { hubModel, model } = listedModel({ repo, commit }, selection);
    const need = await unlessLeft(hubNeeds.need(questionOf(model, values), [hubModel]), late).catch(
      (error: unknown) => {
        throw late.aborted ? new GatewayError("wait_timeout", "not estimated in time: repeat the request") : error;
      },
    );
    return { need: needBody(need), fits: fitsIn(need.bytes, memory.limits()), why: null };
  }

  const models: HubModels[number][] = [];
  for (const tag of tagsOf(tree)) {
    try {
      const selection = selectFiles(repo, tag, tree);
      const files = [...selection.model, ...(selection.projector ? [selection.projector] : [])];
      const size = files.reduce((sum, file) => sum + file.size, 0);
      const unknown = (error: unknown) => ({ need: null, fits: null, why: toGatewayError(error).message });
      models.push({ tag, files: files.map(({ path }) => path), size, ...(await needOf(selection).catch(unknown)) });
    } catch (error) {
      // Several files with one tag, or a missing shard.
      models.push({ tag, files: [], size: null, need: null, fits: null, why: toGatewayError(error).message });
    }
    left.throwIfAborted();
  }
  return models;
}
