// The models on the disk: each one's size, its stale files and its unfinished download. Pure.
import type { DiskBody } from "../../../schemas/disk.ts";
import type { DesiredModel } from "../../desired/document/document.ts";
import { findCached } from "../../plan/find-model.ts";
import { type CachedModel, filesOf, type Knowable } from "../../plan/observed.ts";
import { holdsFilesOf, pathInRepo } from "../../plan/removals.ts";
import { type Garbage, type GarbageInput, previewOf } from "./garbage.ts";
import { bytesOf, type CacheSurvey, linkedBlobs, type RepoFiles } from "./repo-files.ts";
import { diskSpeech, speechFilesIn } from "./speech-files.ts";

type DiskModel = DiskBody["models"][number];

export interface DiskInput extends Omit<GarbageInput, "busy" | "now"> {
  readonly garbage: Garbage;
  /** By the router's ids, ms. */
  readonly lastUsed: ReadonlyMap<string, number>;
  /** Bytes of what unfinished pulls bring, by id in lower case, as far as they are known. */
  readonly totals: ReadonlyMap<string, number>;
  readonly freeBytes: Knowable<number>;
  /** What models take of memory, by the router's ids. */
  readonly needOf: (upstreamId: string) => DiskModel["memory"];
}

/** The body of `GET /api/models/disk`. */
export function diskReport(input: DiskInput): DiskBody {
  const { survey, models, desired, freeBytes } = input;
  const partials = survey.repos.flatMap((files) => files.partials);
  const pulled = partials.flatMap(({ model, isShown }) => (isShown ? [] : (model ?? [])));
  // Sidecars and documents may write one id in two ways.
  const names = new Map([...pulled, ...desired.models.map(({ id }) => id)].map((id) => [id.toLowerCase(), id]));
  const absent = [...names.values()].filter((id) => !findCached(models, id));
  const all = [
    ...models.map((model) => cachedModel(model, input)),
    ...absent.map((id) => absentModel(id, input)),
  ].toSorted((a, b) => (a.id < b.id ? -1 : 1));
  return {
    models: all,
    speech: diskSpeech(input),
    totals: {
      bytes: everyByte(survey),
      modelBytes: bytesOf(models.flatMap((model) => linksOf(model, survey).current)),
      speechBytes: bytesOf(survey.repos.flatMap(speechFilesIn).flatMap(({ links }) => links)),
      staleBytes: all.reduce((total, { staleBytes }) => total + staleBytes, 0),
      orphanBytes: survey.repos.reduce((total, files) => total + orphanBytes(files), 0),
      partialBytes: partials.reduce((total, { bytes }) => total + bytes, 0),
      collectableBytes: previewOf(input.garbage).items.reduce((total, { bytes }) => total + bytes, 0),
      freeBytes: freeBytes.state === "known" ? freeBytes.value : null,
    },
    unreadable: survey.unreadable.map(({ repo }) => repo),
  };
}

function cachedModel(model: CachedModel, input: DiskInput): DiskModel {
  const { survey, desired, inventory, models, loaded } = input;
  const { current, older } = linksOf(model, survey);
  const inodes = new Set(current.map(({ inode }) => inode));
  return {
    id: model.id,
    present: model.complete,
    ...namedBy(desired.models.find(({ id }) => findCached(models, id) === model)),
    ours: inventory.some((entry) => holdsFilesOf(entry, model)),
    loaded: loaded.state === "known" && loaded.value.includes(model.upstreamId),
    lastUsed: isoTime(input.lastUsed.get(model.upstreamId)),
    files: current.length,
    bytes: bytesOf(current),
    staleBytes: bytesOf(older.filter(({ inode }) => !inodes.has(inode))),
    memory: input.needOf(model.upstreamId),
    partial: partialOf([model.id, ...model.aliases], input),
  };
}

/** A model that the document names or a pull has begun, and that the cache does not show. */
function absentModel(id: string, input: DiskInput): DiskModel {
  const { desired, inventory } = input;
  const isSame = (other: { readonly id: string }) => other.id.toLowerCase() === id.toLowerCase();
  return {
    id,
    present: false,
    ...namedBy(desired.models.find(isSame)),
    ours: inventory.some(isSame),
    loaded: false,
    lastUsed: null,
    files: 0,
    bytes: 0,
    staleBytes: 0,
    memory: null,
    partial: partialOf([id], input),
  };
}

function namedBy(model: DesiredModel | undefined): Pick<DiskModel, "desired" | "documentName" | "variants"> {
  const variants = model?.variants?.map(({ name }) => name);
  return { desired: model !== undefined, documentName: model?.id ?? null, ...(variants && { variants }) };
}

function partialOf(names: readonly string[], { survey, totals }: DiskInput): DiskModel["partial"] {
  const folded = new Set(names.map((name) => name.toLowerCase()));
  const own = survey.repos.flatMap(({ partials }) =>
    partials.filter(({ model, isShown }) => !isShown && folded.has(model?.toLowerCase() ?? "")),
  );
  if (own.length === 0) return null;
  // Not the sum of those begun: a model of several files would seem to grow.
  const total = [...folded].map((name) => totals.get(name)).find((bytes) => bytes !== undefined) ?? null;
  return { bytes: own.reduce((sum, { bytes }) => sum + bytes, 0), total };
}

/** The model's files in its revision, and what other revisions have by their names. */
function linksOf(model: CachedModel, { repos }: CacheSurvey) {
  const paths = new Set(filesOf(model).map((file) => pathInRepo(model, file)));
  const snapshots = repos.find(({ repo }) => repo === model.repo)?.snapshots ?? [];
  const named = (isCurrent: boolean) =>
    snapshots
      .filter(({ commit }) => (commit === model.commit) === isCurrent)
      .flatMap(({ files }) => files.filter(({ path }) => paths.has(path)));
  return { current: named(true), older: named(false) };
}

function orphanBytes(files: RepoFiles): number {
  const linked = linkedBlobs(files);
  const orphans = files.blobs.filter(({ name }) => !linked.has(name));
  return orphans.reduce((total, { size }) => total + size, 0);
}

/** Each file once. */
function everyByte({ repos }: CacheSurvey): number {
  const files = repos.flatMap(({ snapshots, blobs }) => [...snapshots.flatMap((snapshot) => snapshot.files), ...blobs]);
  return repos.flatMap(({ partials }) => partials).reduce((total, { bytes }) => total + bytes, bytesOf(files));
}

function isoTime(ms: number | undefined): string | null {
  return ms === undefined ? null : new Date(ms).toISOString();
}
