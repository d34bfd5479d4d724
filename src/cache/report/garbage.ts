// What of ours in the model cache serves nothing: revisions that were superseded, voices and transcription models that are not in
// use, blobs that no link shows, abandoned partials. Pure. What is unknown, in use, or another program's stays.
import type { CollectedBody } from "../../../schemas/disk.ts";
import type { Desired } from "../../desired/document/document.ts";
import { type CachedModel, filesOf, type InventoryEntry, type Knowable } from "../../plan/observed.ts";
import { pathInRepo } from "../../plan/removals.ts";
import { storedCommits, storedFiles } from "../../plan/removed-files.ts";
import {
  type CacheSurvey,
  freedBytes,
  linkedBlobs,
  type RepoFiles,
  type RepoPartial,
  type RepoPlace,
} from "./repo-files.ts";
import { type SpeechFacts, type SpeechFiles, unusedSpeech } from "./speech-files.ts";
import { isStored, storedBlobs } from "./stored.ts";

type GarbageItem = CollectedBody["items"][number];

/** A repository with garbage that does not go now. */
export type SkippedRepo = CollectedBody["skipped"][number];

/** What goes of one repository. */
export interface RepoGarbage {
  readonly repo: string;
  readonly items: readonly GarbageItem[];
  readonly links: readonly RepoPlace[];
  /** Names of blobs, which go only if no link shows them then. */
  readonly blobs: readonly string[];
  /** Relative to the repository's folder. */
  readonly partials: readonly string[];
  readonly speech: readonly SpeechFiles[];
}

export interface Garbage {
  readonly repos: readonly RepoGarbage[];
  readonly skipped: readonly SkippedRepo[];
}

/** What was collected, or would be. */
export type Collected = Omit<CollectedBody, "dryRun">;

export interface GarbageInput {
  readonly survey: CacheSurvey;
  readonly models: readonly CachedModel[];
  readonly inventory: readonly InventoryEntry[];
  readonly desired: Pick<Desired, "models" | "removals" | "speech">;
  readonly speech: SpeechFacts;
  /** Ids of the models that the router has loaded or is loading; unknown while it does not answer. */
  readonly loaded: Knowable<readonly string[]>;
  /** Repositories (`owner/name`) with a pull or import under way. */
  readonly busy: readonly string[];
  /** ms */
  readonly now: number;
}

const hourMs = 3_600_000;
/** A pull of another gateway may wait for its hub for a while. */
const anothersMs = 7 * 24 * hourMs;

export function findGarbage(input: GarbageInput): Garbage {
  const repos: RepoGarbage[] = [];
  const skipped: SkippedRepo[] = input.survey.unreadable.map(({ repo, why }) => ({
    repo,
    reason: "Unreadable",
    message: why,
  }));
  for (const files of input.survey.repos) {
    const garbage = garbageOf(files, input);
    if (garbage.items.length === 0) continue;
    const obstacle = obstacleTo(files, input);
    if (obstacle) skipped.push({ repo: files.repo, ...obstacle });
    else repos.push(garbage);
  }
  return { repos, skipped };
}

/** What collecting would do. */
export function previewOf({ repos, skipped }: Garbage): Collected {
  return { items: repos.flatMap(({ items }) => [...items]), skipped: [...skipped], deletedFiles: 0, freedBytes: 0 };
}

type Obstacle = Omit<SkippedRepo, "repo">;

export const beingPulled: Obstacle = { reason: "BeingPulled", message: "a pull or import of it is under way" };

function obstacleTo(files: RepoFiles, { loaded, busy, now }: GarbageInput): Obstacle | null {
  const repo = files.repo.toLowerCase();
  if (busy.some((other) => other.toLowerCase() === repo)) return beingPulled;
  if (files.hasFolderLink)
    return { reason: "FolderLink", message: "a folder in its snapshots is a link, which is not followed" };
  if (loaded.state === "unknown")
    return { reason: "Unknown", message: `which models are loaded is not known: ${loaded.why}` };
  const inUse = loaded.value.find((name) => name.toLowerCase().startsWith(`${repo}:`));
  if (inUse !== undefined) return { reason: "ModelLoaded", message: `${inUse} is loaded: eject it first` };
  if (files.othersAt === null || now - files.othersAt >= hourMs) return null;
  return { reason: "AnotherProgram", message: "another program used it within the last hour: its locks are fresh" };
}

/** Links that go, as an item without what that frees. */
interface Unlinked extends Omit<GarbageItem, "repo" | "files" | "bytes"> {
  readonly links: readonly RepoPlace[];
}

function garbageOf(files: RepoFiles, input: GarbageInput): RepoGarbage {
  const { repo } = files;
  const entries = input.inventory.filter((entry) => entry.repo === repo);
  const speech = unusedSpeech(files, input);
  const unlinked = [...staleRevisions(files, entries, input), ...speech.map(unlinkedSpeech)];
  const links = unlinked.flatMap((item) => item.links);
  const stored = [
    ...storedBlobs(entries.flatMap(storedFiles)),
    ...speech.flatMap((each) => each.links.flatMap(({ blob }) => blob ?? [])),
  ];
  const lost = lostBlobs(files, entries, stored, links, input);
  const linked = linkedBlobs(files);
  const orphans = files.blobs.filter(({ name }) => lost.has(name) && !linked.has(name));
  const partials = files.partials.filter((partial) => isAbandoned(partial, input));
  return {
    repo,
    links,
    blobs: [...lost],
    partials: partials.flatMap(({ paths }) => paths),
    speech,
    items: [
      ...unlinkedItems(files, unlinked, lost),
      ...orphans.map(({ name }) => orphanItem(files, name)),
      ...partials.map((partial) => partialItem(repo, partial)),
    ],
  };
}

/**
 * Revisions that we linked and that no ref names now, nor an entry of the inventory whose model is wanted. A model that is listed
 * from one of them stays: `rm` and `prune` are for that. A revision that another program put a file into may be its own by
 * now, down to the last file.
 */
function staleRevisions(
  { repo, refs, snapshots }: RepoFiles,
  entries: readonly InventoryEntry[],
  { models, desired }: GarbageInput,
): Unlinked[] {
  const wanted = wantedIds(desired);
  // Of the others the listed models stay. If another program has moved the branch, nothing else takes what is ours.
  const kept = entries.filter(({ id, keep }) => keep || wanted.has(id.toLowerCase()));
  const named = new Set([...refs, ...kept].map(({ commit }) => commit));
  const linkedByUs = storedCommits(entries);
  const stored = entries.flatMap(storedFiles);
  const shown = new Set(
    models
      .filter((model) => model.repo === repo && (model.complete || wanted.has(model.id.toLowerCase())))
      .flatMap((model) => filesOf(model).map((file) => `${model.commit}/${pathInRepo(model, file)}`)),
  );
  return snapshots
    .filter(({ commit, files }) => {
      const isOurs = files.every(({ path, blob }) => isStored(stored, path, blob));
      return isOurs && linkedByUs.has(commit) && !named.has(commit);
    })
    .map(({ commit, files }): Unlinked => {
      const links = files.filter(({ path }) => !shown.has(`${commit}/${path}`)).map(({ path }) => ({ commit, path }));
      return {
        kind: "revision",
        path: inCache(repo, `snapshots/${commit}`),
        reason: "StaleRevision",
        message: `${links.length} file(s) of revision ${commit.slice(0, 12)}, which nothing names any more`,
        links,
      };
    })
    .filter(({ links }) => links.length > 0);
}

function unlinkedSpeech({ repo, kind, name, links }: SpeechFiles): Unlinked {
  const main = links.find(({ path }) => /\.(?:onnx|bin)$/.test(path)) ?? links[0];
  return {
    kind: "speech",
    path: inCache(repo, `snapshots/${main?.commit ?? ""}/${main?.path ?? ""}`),
    reason: "SpeechUnused",
    message: `${kind === "synthesis" ? "the voice" : "the transcription model"} ${name}, which the document does not name`,
    links,
  };
}

/** Of these blobs, which we stored, those that no link shows once those links are gone. */
function lostBlobs(
  files: RepoFiles,
  entries: readonly InventoryEntry[],
  stored: readonly string[],
  going: readonly RepoPlace[],
  { desired }: GarbageInput,
): ReadonlySet<string> {
  const ours = new Set(stored);
  const wanted = wantedIds(desired);
  const needed = new Set([
    ...linkedBlobs(files, going),
    // A pull links again what is there of a wanted model, and a removal under way takes its own.
    ...entries
      .filter((entry) => entry.keep || wanted.has(entry.id.toLowerCase()))
      .flatMap((entry) => entry.files.map(({ blob }) => blob)),
    ...desired.removals.filter((removal) => removal.repo === files.repo).flatMap((removal) => removal.blobs),
  ]);
  return new Set(files.blobs.flatMap(({ name }) => (ours.has(name) && !needed.has(name) ? name : [])));
}

/** A blob that several of them show goes with the last. */
function unlinkedItems(files: RepoFiles, unlinked: readonly Unlinked[], lost: ReadonlySet<string>): GarbageItem[] {
  const gone: RepoPlace[] = [];
  return unlinked.map(({ links, ...item }) => {
    const before = linkedBlobs(files, gone);
    gone.push(...links);
    const after = linkedBlobs(files, gone);
    const freed = new Set([...before].filter((blob) => lost.has(blob) && !after.has(blob)));
    return { repo: files.repo, ...item, files: links.length + freed.size, bytes: freedBytes(files, freed) };
  });
}

function orphanItem(files: RepoFiles, blob: string): GarbageItem {
  return {
    repo: files.repo,
    kind: "blob",
    path: inCache(files.repo, `blobs/${blob}`),
    files: 1,
    bytes: freedBytes(files, new Set([blob])),
    reason: "OrphanBlob",
    message: "this gateway stored it, and nothing links it",
  };
}

function isAbandoned({ model, modifiedAt, ...partial }: RepoPartial, { desired, now }: GarbageInput): boolean {
  const isWanted = wantedIds(desired).has(model?.toLowerCase() ?? "");
  if (partial.isHeld || (isWanted && !partial.isShown)) return false;
  return now - modifiedAt >= (partial.isAnothers ? anothersMs : hourMs);
}

function wantedIds({ models }: Pick<Desired, "models">): ReadonlySet<string> {
  return new Set(models.map(({ id }) => id.toLowerCase()));
}

function partialItem(repo: string, { paths, bytes, model }: RepoPartial): GarbageItem {
  const partial = paths.find((path) => /[0-9a-f]{40}\.gw\.incomplete$/.test(path)) ?? paths[0] ?? "";
  return {
    repo,
    kind: "partial",
    path: inCache(repo, partial),
    files: paths.length,
    bytes,
    reason: "AbandonedPartial",
    message: `an unfinished download${model === null ? "" : ` of ${model}`} that nothing resumes`,
  };
}

function inCache(repo: string, path: string): string {
  return `models--${repo.replace("/", "--")}/${path}`;
}
