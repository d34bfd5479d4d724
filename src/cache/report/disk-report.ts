// What the models take on the disk: each one's size, what it shares, what is stale of it, what is on its way. Pure.
import type { Desired, DesiredModel } from "../../desired/document/document.ts";
import { type CachedModel, findCached, type InventoryEntry, type Knowable } from "../../plan/observed.ts";
import { holdsFilesOf, pathInRepo } from "../../plan/removals.ts";
import { type Garbage, previewOf } from "./garbage.ts";
import { type CacheSurvey, linkedBlobs, type RepoFiles, type RepoLink } from "./repo-files.ts";

/** One revision that has files of a model. */
export interface DiskRevision {
  readonly commit: string;
  /** Branches and tags of the cache that name it. */
  readonly refs: readonly string[];
  /** The model is served from it. */
  readonly current: boolean;
  readonly bytes: number;
}

export interface DiskModel {
  readonly id: string;
  /** All of its files are there. */
  readonly present: boolean;
  /** The document names it. */
  readonly desired: boolean;
  /** By this id; null: it does not. */
  readonly documentName: string | null;
  /** This gateway stored it, so may prune it. */
  readonly ours: boolean;
  readonly loaded: boolean;
  /** ISO 8601; null: never, as far as this gateway remembers. */
  readonly lastUsed: string | null;
  readonly files: number;
  /** Bytes of its files, the projector too. */
  readonly bytes: number;
  /** Of these, what something else links too: they stay when the model is removed. */
  readonly sharedBytes: number;
  /** Of its files, what lies in other revisions and is not in the current one. */
  readonly staleBytes: number;
  readonly revisions: readonly DiskRevision[];
  /** What an unfinished pull has left to go on from; null where there is none. */
  readonly partial: { readonly bytes: number; readonly total: number | null } | null;
}

export interface DiskReport {
  readonly models: readonly DiskModel[];
  readonly totals: {
    /** Everything in the cache, each file once. */
    readonly bytes: number;
    readonly modelBytes: number;
    readonly staleBytes: number;
    /** Blobs that nothing links. */
    readonly orphanBytes: number;
    readonly partialBytes: number;
    /** What `gc` would free now. */
    readonly collectableBytes: number;
    /** null where the system does not say. */
    readonly freeBytes: number | null;
  };
  /** Repositories whose folder cannot be read. */
  readonly unreadable: readonly string[];
}

export interface DiskInput {
  readonly survey: CacheSurvey;
  readonly models: readonly CachedModel[];
  readonly inventory: readonly InventoryEntry[];
  readonly desired: Pick<Desired, "models">;
  /** By the router's ids; empty while nobody knows. */
  readonly loaded: readonly string[];
  /** By the router's ids, ms. */
  readonly lastUsed: ReadonlyMap<string, number>;
  /** Bytes of what unfinished pulls bring, by id in lower case, as far as they ever told. */
  readonly totals: ReadonlyMap<string, number>;
  readonly garbage: Garbage;
  readonly freeBytes: Knowable<number>;
}

export function diskReport(input: DiskInput): DiskReport {
  const { survey, models, desired, freeBytes } = input;
  const linkedAt = placesOf(survey);
  const cached = models.map((model) => cachedModel(model, input, linkedAt));
  const partials = survey.repos.flatMap((files) => files.partials);
  const pulled = new Set(partials.flatMap(({ model, isShown }) => (isShown ? [] : (model ?? []))));
  const known = (id: string): boolean => findCached(models, id) !== undefined;
  const wanted = desired.models.map(({ id }) => id);
  // Journals and documents may write one id in two ways.
  const names = new Map([...pulled, ...wanted].map((id) => [id.toLowerCase(), id]));
  const absent = [...names.values()].filter((id) => !known(id));
  const all = [...cached, ...absent.map((id) => absentModel(id, input))].toSorted((a, b) => (a.id < b.id ? -1 : 1));
  return {
    models: all,
    totals: {
      bytes: sum(distinct(survey.repos.flatMap(everything))),
      modelBytes: sum(
        distinct(models.flatMap((model) => currentLinks(model, survey).map(({ inode, size }) => ({ inode, size })))),
      ),
      staleBytes: all.reduce((total, { staleBytes }) => total + staleBytes, 0),
      orphanBytes: survey.repos.flatMap(orphans).reduce((total, { size }) => total + size, 0),
      partialBytes: partials.reduce((total, { bytes }) => total + bytes, 0),
      collectableBytes: previewOf(input.garbage).items.reduce((total, { bytes }) => total + bytes, 0),
      freeBytes: freeBytes.state === "known" ? freeBytes.value : null,
    },
    unreadable: survey.unreadable.map(({ repo }) => repo),
  };
}

interface Sized {
  readonly inode: string | null;
  readonly size: number | null;
}

function cachedModel(
  model: CachedModel,
  input: DiskInput,
  linkedAt: ReadonlyMap<string, ReadonlySet<string>>,
): DiskModel {
  const { survey, desired, inventory, models } = input;
  const repo = survey.repos.find((files) => files.repo === model.repo);
  const projector = model.projector === null ? null : pathInRepo(model, model.projector);
  const paths = pathsOf(model);
  const current = currentLinks(model, survey);
  const inodes = new Set(current.map(({ inode }) => inode));
  // A projector serves every quant beside it, and goes with the last of them.
  const alone = !models.some((other) => other.repo === model.repo && other.id !== model.id);
  const isShared = ({ inode, path }: RepoLink): boolean =>
    (path === projector && !alone) ||
    [...(linkedAt.get(inode ?? "") ?? [])].some((place) => !paths.some((own) => place === `${model.repo} ${own}`));
  const revisions = (repo?.snapshots ?? []).flatMap(({ commit, files }): DiskRevision[] => {
    const own = files.filter(({ path }) => paths.includes(path));
    if (own.length === 0) return [];
    const refs = repo?.refs.filter((ref) => ref.commit === commit).map(({ name }) => name) ?? [];
    return [{ commit, refs, current: commit === model.commit, bytes: sum(distinct(own)) }];
  });
  const older = (repo?.snapshots ?? [])
    .filter(({ commit }) => commit !== model.commit)
    .flatMap(({ files }) => files.filter(({ path, inode }) => paths.includes(path) && !inodes.has(inode)));
  return {
    id: model.id,
    present: model.complete,
    ...namedBy(desired.models.find(({ id }) => findCached(models, id) === model)),
    ours: inventory.some((entry) => holdsFilesOf(entry, model)),
    loaded: input.loaded.includes(model.upstreamId),
    lastUsed: isoTime(input.lastUsed.get(model.upstreamId)),
    files: current.length,
    bytes: sum(distinct(current)),
    sharedBytes: sum(distinct(current.filter(isShared))),
    staleBytes: sum(distinct(older)),
    revisions,
    partial: partialOf([model.id, ...model.aliases], input),
  };
}

/** One that the document wants or a pull has begun, and the cache does not show. */
function absentModel(id: string, input: DiskInput): DiskModel {
  const { desired, inventory } = input;
  return {
    id,
    present: false,
    ...namedBy(desired.models.find((model) => model.id.toLowerCase() === id.toLowerCase())),
    ours: inventory.some((entry) => entry.id.toLowerCase() === id.toLowerCase()),
    loaded: false,
    lastUsed: null,
    files: 0,
    bytes: 0,
    sharedBytes: 0,
    staleBytes: 0,
    revisions: [],
    partial: partialOf([id], input),
  };
}

function namedBy(model: DesiredModel | undefined): Pick<DiskModel, "desired" | "documentName"> {
  return { desired: model !== undefined, documentName: model?.id ?? null };
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

function pathsOf(model: CachedModel): string[] {
  return [...model.files, ...(model.projector === null ? [] : [model.projector])].map((file) =>
    pathInRepo(model, file),
  );
}

function currentLinks(model: CachedModel, { repos }: CacheSurvey): RepoLink[] {
  const paths = pathsOf(model);
  const snapshot = repos
    .find((files) => files.repo === model.repo)
    ?.snapshots.find(({ commit }) => commit === model.commit);
  return snapshot?.files.filter(({ path }) => paths.includes(path)) ?? [];
}

/** By file: what leads to it, as `owner/name path`, whatever the revision. */
function placesOf({ repos }: CacheSurvey): Map<string, Set<string>> {
  const places = new Map<string, Set<string>>();
  for (const { repo, snapshots } of repos) {
    for (const { inode, path } of snapshots.flatMap(({ files }) => files)) {
      if (inode === null) continue;
      const own = places.get(inode) ?? new Set();
      places.set(inode, own.add(`${repo} ${path}`));
    }
  }
  return places;
}

function orphans(files: RepoFiles): RepoFiles["blobs"] {
  const linked = linkedBlobs(files);
  const unfinished = new Set(files.partials.flatMap(({ paths }) => paths));
  return files.blobs.filter(({ name }) => !linked.has(name) && !unfinished.has(`blobs/${name}`));
}

function everything({ snapshots, blobs, partials }: RepoFiles): Sized[] {
  const whole = new Set(blobs.map(({ name }) => `blobs/${name}`));
  // What is whole and not linked yet counts as a blob.
  const rest = partials.filter(({ paths }) => !paths.some((path) => whole.has(path)));
  return [
    ...snapshots.flatMap(({ files }) => files),
    ...blobs,
    ...rest.map(({ paths, bytes }) => ({ inode: paths.join(), size: bytes })),
  ];
}

/** Each file once, however many names lead to it. */
function distinct(files: readonly Sized[]): Sized[] {
  return [...new Map(files.filter(({ inode }) => inode !== null).map((file) => [file.inode, file])).values()];
}

function sum(files: readonly Sized[]): number {
  return files.reduce((total, { size }) => total + (size ?? 0), 0);
}

function isoTime(ms: number | undefined): string | null {
  return ms === undefined ? null : new Date(ms).toISOString();
}
