// The models of a repository's folder as the scanner finds them, and as the plan expects them to be. Pure.
import type { CachedRepo } from "../cache/layout/cached-repo.ts";
import { groupsOf } from "../cache/layout/cached-repo.ts";
import { type ModelGroup, modelOf } from "../cache/layout/models.ts";
import type { CachedModel, InventoryEntry } from "./observed.ts";

/** What a model's first file says of it. */
export type FileFacts = Pick<CachedModel, "nCtxTrain" | "architecture" | "fileType" | "sizeLabel" | "pooling">;

export const noFacts: FileFacts = {
  nCtxTrain: null,
  architecture: null,
  fileType: null,
  sizeLabel: null,
  pooling: null,
};

export interface FoundModel {
  readonly group: ModelGroup;
  readonly model: Omit<CachedModel, keyof FileFacts>;
}

export function modelsIn(repo: CachedRepo, inventory: readonly InventoryEntry[]): FoundModel[] {
  return groupsOf(repo, pinnedFiles(repo.repo, inventory)).map((group) => ({
    group,
    model: modelOf(repo.repo, `${repo.root}/snapshots/${group.commit}`, group),
  }));
}

/** Files of models that were pulled at a revision of their own, with its commit: they are served from there. */
function pinnedFiles(repo: string, inventory: readonly InventoryEntry[]): ReadonlyMap<string, string> {
  const own = inventory.filter((entry) => entry.repo === repo && entry.revision !== "main");
  return new Map(own.flatMap(({ commit, files }) => files.map(({ path }) => [path, commit])));
}
