// The models on the disk: each one's size, what it shares, its stale files and its unfinished download. Pure.
import type { DiskBody } from "../../../schemas/disk.ts";
import type { Desired, DesiredModel } from "../../desired/document/document.ts";
import { type CachedModel, findCached, holdsFilesOf, type InventoryEntry, type Knowable } from "../../plan/observed.ts";
import { pathInRepo } from "../../plan/removals.ts";
import { type Garbage, previewOf } from "./garbage.ts";
import { bytesOf, type CacheSurvey, linkedBlobs, type RepoFiles, type RepoLink } from "./repo-files.ts";

type DiskModel = DiskBody["models"][number];
type DiskRevision = DiskModel["revisions"][number];

/** The body of `GET /api/models/disk` without speech. */
export interface DiskReport extends Pick<DiskBody, "models" | "unreadable"> {
  readonly totals: Omit<DiskBody["totals"], "speechBytes">;
}

export interface DiskInput {
  readonly survey: CacheSurvey;
  readonly models: readonly CachedModel[];
  readonly inventory: readonly InventoryEntry[];
  readonly desired: Pick<Desired, "models">;
  /** By the router's ids; empty while they are not known. */
  readonly loaded: readonly string[];
  /** By the router's ids, ms. */
  readonly lastUsed: ReadonlyMap<string, number>;
  /** Bytes of what unfinished pulls bring, by id in lower case, as far as they are known. */
  readonly totals: ReadonlyMap<string, number>;
  readonly garbage: Garbage;
  readonly freeBytes: Knowable<number>;
}

export function diskReport(input: DiskInput): DiskReport {
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
  const repoOf = (model: CachedModel) => survey.repos.find(({ repo }) => repo === model.repo);
  return {
    models: all,
    totals: {
      bytes: everyByte(survey),
      modelBytes: bytesOf(models.flatMap((model) => currentLinks(model, repoOf(model)))),
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
  const { survey, desired, inventory, models } = input;
  const files = survey.repos.find(({ repo }) => repo === model.repo);
  const snapshots = files?.snapshots ?? [];
  const paths = pathsOf(model);
  const projector = model.projector === null ? null : pathInRepo(model, model.projector);
  // A projector serves every quant beside it, and goes with the last of them.
  const alone = !models.some((other) => other.repo === model.repo && other.id !== model.id);
  const current = currentLinks(model, files);
  const inodes = new Set(current.map(({ inode }) => inode));
  const elsewhere = new Set(
    survey.repos.flatMap(({ repo, snapshots: all }) =>
      all.flatMap((other) =>
        other.files.flatMap(({ path, inode }) => (repo === model.repo && paths.has(path) ? [] : inode)),
      ),
    ),
  );
  const revisions = snapshots.flatMap(({ commit, files: all }): DiskRevision[] => {
    const own = all.filter(({ path }) => paths.has(path));
    const refs = files?.refs.filter((ref) => ref.commit === commit).map(({ name }) => name) ?? [];
    return own.length === 0 ? [] : [{ commit, refs, current: commit === model.commit, bytes: bytesOf(own) }];
  });
  return {
    id: model.id,
    present: model.complete,
    ...namedBy(desired.models.find(({ id }) => findCached(models, id) === model)),
    ours: inventory.some((entry) => holdsFilesOf(entry, model)),
    loaded: input.loaded.includes(model.upstreamId),
    lastUsed: isoTime(input.lastUsed.get(model.upstreamId)),
    files: current.length,
    bytes: bytesOf(current),
    sharedBytes: bytesOf(current.filter(({ inode, path }) => (path === projector && !alone) || elsewhere.has(inode))),
    staleBytes: bytesOf(
      snapshots.flatMap((snapshot) =>
        snapshot.files.filter(({ path, inode }) => paths.has(path) && !inodes.has(inode)),
      ),
    ),
    revisions,
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

function pathsOf(model: CachedModel): ReadonlySet<string> {
  const files = model.projector === null ? model.files : [...model.files, model.projector];
  return new Set(files.map((file) => pathInRepo(model, file)));
}

function currentLinks(model: CachedModel, files: RepoFiles | undefined): readonly RepoLink[] {
  const paths = pathsOf(model);
  const snapshot = files?.snapshots.find(({ commit }) => commit === model.commit);
  return snapshot?.files.filter(({ path }) => paths.has(path)) ?? [];
}

function orphanBytes(files: RepoFiles): number {
  const linked = linkedBlobs(files);
  const unfinished = new Set(files.partials.flatMap(({ paths }) => paths));
  const orphans = files.blobs.filter(({ name }) => !linked.has(name) && !unfinished.has(`blobs/${name}`));
  return orphans.reduce((total, { size }) => total + size, 0);
}

/** Each file once. A whole file that is not linked yet counts as a blob. */
function everyByte({ repos }: CacheSurvey): number {
  const whole = new Set(repos.flatMap(({ blobs }) => blobs.map(({ name }) => `blobs/${name}`)));
  const rest = repos.flatMap(({ partials }) => partials.filter(({ paths }) => !paths.some((path) => whole.has(path))));
  const files = repos.flatMap(({ snapshots, blobs }) => [...snapshots.flatMap((snapshot) => snapshot.files), ...blobs]);
  return rest.reduce((total, { bytes }) => total + bytes, bytesOf(files));
}

function isoTime(ms: number | undefined): string | null {
  return ms === undefined ? null : new Date(ms).toISOString();
}
