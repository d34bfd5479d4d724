// Snapshots of a made-up machine for the planner's tests: short to write, everything left out is filled in as it would be
// on a machine at rest. Ids come from file names by the program's own rules.

import { join } from "node:path/posix";
import type { CachedRepo } from "../../../src/cache/layout/cached-repo.ts";
import type { Snapshot, SnapshotFile } from "../../../src/cache/layout/models.ts";
import { type Desired, type Removal, toDesired } from "../../../src/desired/document/document.ts";
import { validateDocument } from "../../../src/desired/document/validate.ts";
import { modelsIn, noFacts } from "../../../src/plan/cached-models.ts";
import { noLoads } from "../../../src/plan/load-record.ts";
import {
  type CacheSnapshot,
  type InventoryEntry,
  type Knowable,
  type Observed,
  type RouterSnapshot,
  restingSpeech,
  type SourceFile,
  type SpeechState,
  type WorkerSnapshot,
} from "../../../src/plan/observed.ts";
import { plan } from "../../../src/plan/plan.ts";
import { emptyPreset, parsePreset } from "../../../src/plan/preset-file.ts";
import type { Verdict } from "../../../src/plan/worker-verdict.ts";
import { readAsRouter } from "./router-reading.ts";

export const mainCommit = "a".repeat(40);
export const otherCommit = "b".repeat(40);
export const silenceLimitMs = 20_000;
export const knownOptions: ReadonlySet<string> = new Set([
  "c",
  "ctx-size",
  "LLAMA_ARG_CTX_SIZE",
  "m",
  "model",
  "hf-repo",
  "mmproj",
  "offline",
  "stop-timeout",
  "rpc",
  "threads",
  "flash-attn",
  "parallel",
]);

/** A file of the model cache. */
export interface WorldFile {
  /** `owner/name` */
  readonly repo: string;
  readonly path: string;
  readonly commit: string;
  /** null: its blob is gone. */
  readonly size: number | null;
  readonly isDamaged?: boolean;
}

/**
 * `owner/name/path/of/file.gguf`; `@b` at the end puts it into a revision other than main, `!` makes its link dangle, `~` its
 * content wrong.
 */
export function worldFile(text: string): WorldFile {
  const dangles = text.endsWith("!");
  const elsewhere = /@b[!~]?$/.test(text);
  const [owner, name, ...path] = text.replace(/(@b)?[!~]?$/, "").split("/");
  return {
    repo: `${owner}/${name}`,
    path: path.join("/"),
    commit: elsewhere ? otherCommit : mainCommit,
    size: dangles ? null : 1000,
    ...(text.endsWith("~") ? { isDamaged: true } : {}),
  };
}

export function absolutePath({ repo, commit, path }: WorldFile): string {
  return `/cache/models--${repo.replace("/", "--")}/snapshots/${commit}/${path}`;
}

/** What the scanner makes of these files. */
export function cacheOf(
  files: readonly WorldFile[],
  unreadable: readonly string[] = [],
  inventory: readonly InventoryEntry[] = [],
): CacheSnapshot {
  const names = [...new Set(files.map((file) => file.repo))].sort();
  const repos = names.filter((repo) => !unreadable.includes(repo)).map((repo) => repoOf(repo, files));
  const models = repos.flatMap((repo) => modelsIn(repo, inventory).map(({ model }) => ({ ...model, ...noFacts })));
  const seen = files.map((file) => (unreadable.includes(file.repo) ? file.repo : JSON.stringify(file)));
  return {
    dir: "/cache",
    models,
    repos,
    signature: [...new Set(seen)].sort().join("\n"),
    unreadable,
    faults: [],
    whole: [],
  };
}

function repoOf(repo: string, files: readonly WorldFile[]): CachedRepo {
  const snapshots = [mainCommit, otherCommit].flatMap((commit): Snapshot[] => {
    const own = files.filter((file) => file.repo === repo && file.commit === commit);
    return own.length === 0 ? [] : [{ commit, files: own.toSorted((a, b) => (a.path < b.path ? -1 : 1)).map(fileOf) }];
  });
  const refs = snapshots.some(({ commit }) => commit === mainCommit) ? [{ name: "main", commit: mainCommit }] : [];
  const root = `/cache/models--${repo.replace("/", "--")}`;
  return { repo, root, refs, snapshots, isFaulty: false };
}

function fileOf({ path, size, isDamaged = false }: WorldFile): SnapshotFile {
  const damage = isDamaged ? `${path} is not what its checksum says` : null;
  return { path, size, modifiedAt: 0, blob: `blob-${path}`, damage };
}

/**
 * An entry of the inventory for a model of these files: `owner/name:tag` and paths in its repository. The document has not named
 * it for long.
 */
export function inventoryEntry(id: string, paths: readonly string[], keep = false): InventoryEntry {
  const colon = id.indexOf(":");
  const files = paths.map((path) => ({ path, blob: `blob-${path}`, size: 1000 }));
  return {
    id,
    repo: id.slice(0, colon),
    tag: id.slice(colon + 1),
    revision: "main",
    commit: mainCommit,
    files,
    addedAt: "2026-01-01T00:00:00.000Z",
    keep,
    leftAt: new Date(0).toISOString(),
  };
}

/** A removal that somebody asked for. */
export function removalOf(id: string, files: readonly string[]): Removal {
  return {
    id,
    repo: id.slice(0, id.indexOf(":")),
    names: [id],
    commit: mainCommit,
    files,
    projector: null,
    presetSection: false,
    blobs: [],
    requestedAt: "2026-01-01T00:00:00.000Z",
    by: "test",
  };
}

export function known<T>(value: T): Knowable<T> {
  return { state: "known", value };
}

/** The document as the program would read it from gateway.yaml. */
export function desiredFrom(input: object): Desired {
  const validation = validateDocument({ version: 1, ...input });
  if (!validation.ok) throw new Error(`the test's document is none: ${JSON.stringify(validation.problems)}`);
  return toDesired(validation.tree);
}

export const restingRouter: RouterSnapshot = {
  binary: "present",
  phase: "stopped",
  pid: null,
  loadedPreset: null,
  loadedCache: null,
  freshlyStarted: false,
  isUnfitted: false,
  crashes: [],
  lastWords: "",
  models: { state: "unknown", why: "the router is not running" },
  silentSince: null,
  build: "1",
  knownOptions,
};

export interface WorldInput {
  /** As {@link worldFile} reads them. */
  readonly files?: readonly string[];
  /** Of workers that are not up, by address. */
  readonly workers?: Readonly<Record<string, Verdict>>;
  readonly unreadable?: readonly string[];
  /** Why the cache or the preset is unknown. */
  readonly unknown?: { readonly cache?: string; readonly preset?: string };
  /** The file's text; absent: as the planner wants it. */
  readonly preset?: string;
  /** By id; the paths in its repository, or those with `keep` and when (ms) the document ceased to name it, null: not noted. */
  readonly inventory?: Readonly<
    Record<
      string,
      | readonly string[]
      | {
          readonly files: readonly string[];
          readonly keep?: boolean;
          readonly leftAt?: number | null;
          readonly source?: SourceFile;
        }
    >
  >;
  /** The stamps of local files that lie in `/sources`, by the words of the document; null: not there. */
  readonly sources?: Readonly<Record<string, string | null>>;
  /** Over engines of speech that are stopped, with nothing on disk. */
  readonly transcription?: Partial<SpeechState>;
  readonly synthesis?: Partial<SpeechState>;
  /** Over a router that runs with the preset and the cache as they are. */
  readonly router?: Partial<RouterSnapshot> & {
    readonly loaded?: readonly string[];
    readonly knows?: readonly string[];
  };
}

/** A snapshot; what the input leaves out is as it would be on a machine where this document is in force. */
export function world(desired: Desired, input: WorldInput): Observed {
  const cache = cacheOf((input.files ?? []).map(worldFile), input.unreadable ?? []);
  const inventory = Object.entries(input.inventory ?? {}).map(([id, value]) => {
    if (!("files" in value)) return inventoryEntry(id, value);
    const { files, keep, leftAt, source } = value;
    const { leftAt: longAgo, ...plain } = inventoryEntry(id, files, keep);
    const entry = { ...plain, ...(source ? { source } : {}) };
    if (leftAt === null || longAgo === undefined) return entry;
    return { ...entry, leftAt: leftAt === undefined ? longAgo : new Date(leftAt).toISOString() };
  });
  const { loaded = [], knows, ...router } = input.router ?? {};
  const options = knows ? new Set(knows) : knownOptions;
  const text = input.preset ?? wantedText(desired, cache, options);
  const running = router.phase === undefined || router.phase === "ready";
  const atRest: Partial<RouterSnapshot> = running
    ? {
        phase: "ready",
        pid: 1,
        loadedPreset: text,
        loadedCache: cache.signature,
        models: known(readAsRouter(text, cache.models, new Set(loaded))),
      }
    : {};
  return {
    cache: input.unknown?.cache === undefined ? known(cache) : { state: "unknown", why: input.unknown.cache },
    preset:
      input.unknown?.preset === undefined ? known(parsePreset(text)) : { state: "unknown", why: input.unknown.preset },
    inventory,
    freeBytes: known(1e12),
    workers: workersOf(desired, input.workers),
    router: { ...restingRouter, knownOptions: options, ...atRest, ...router },
    speech: {
      transcription: { ...restingSpeech, ...input.transcription },
      synthesis: { ...restingSpeech, ...input.synthesis },
    },
    sources: new Map(
      Object.entries(input.sources ?? {}).map(([source, stamp]) => [source, { path: join("/sources", source), stamp }]),
    ),
    documentFiles: new Map(),
    loads: noLoads,
  };
}

/** The document's workers as they are seen: those of `verdicts` as it says, the others up. */
export function workersOf(
  { rpc }: Pick<Desired, "rpc">,
  verdicts: Readonly<Record<string, Verdict>> = {},
): readonly WorkerSnapshot[] {
  return rpc.workers.map(
    (address): WorkerSnapshot => ({
      address,
      endpoint: address,
      verdict: verdicts[address] ?? "up",
      reason: "AsTheTestSays",
      message: "",
      latencyMs: 1,
      version: "8.0.0",
      devices: null,
    }),
  );
}

/** The preset file that the planner writes into an empty folder for this document, with nothing to prune. */
function wantedText(
  desired: Desired,
  cache: CacheSnapshot,
  options: ReadonlySet<string> | null = knownOptions,
): string {
  const empty: Observed = {
    workers: workersOf(desired),
    cache: known({ ...cache, unreadable: [] }),
    preset: known(emptyPreset),
    inventory: [],
    freeBytes: known(0),
    router: { ...restingRouter, knownOptions: options },
    speech: { transcription: restingSpeech, synthesis: restingSpeech },
    sources: new Map(),
    documentFiles: new Map(),
    loads: noLoads,
  };
  const { actions } = plan({ ...desired, suspend: false }, empty, { now: 0, backoff: new Map(), silenceLimitMs });
  const write = actions.find((action) => action.kind === "preset.write");
  if (!write) throw new Error("the planner wants no preset file");
  return write.text;
}
