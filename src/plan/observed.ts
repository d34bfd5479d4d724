// The snapshot of the machine as plain data: the planner's input. Pure types, and small readers of them.
import type { CachedRepo } from "../cache/layout/cached-repo.ts";
import type { CachedFile } from "../cache/layout/layout.ts";
import type { LoadFacts } from "./load-record.ts";
import type { PresetFile } from "./preset-file.ts";
import type { Verdict } from "./worker-verdict.ts";

/** Something observed, or not: what is unknown never leads to a destructive action. */
export type Knowable<T> =
  | { readonly state: "known"; readonly value: T }
  | { readonly state: "unknown"; readonly why: string };

export interface CachedModel {
  /** The interface's identifier. */
  readonly id: string;
  readonly repo: string;
  readonly tag: string;
  /** Other names of the same model: `repo:file-stem`, and the router's tag where only this model has it. */
  readonly aliases: readonly string[];
  /** The id under which the router lists this model by itself; null where it lists none, or another file. */
  readonly routerId: string | null;
  /** The id by which the router is asked for it, and its section's name: {@link routerId}, or one of our making. */
  readonly upstreamId: string;
  /** Commit of the snapshot that holds it. */
  readonly commit: string;
  /** Absolute paths in the snapshot, shards in order; the first is what the router opens. */
  readonly files: readonly string[];
  /** Of each file the name of the blob that it links to; null for a plain file. */
  readonly blobs: readonly (string | null)[];
  readonly bytes: number;
  /** Every shard is there and whole. */
  readonly complete: boolean;
  /** Which of its files (projector included) is damaged, and how; null: none is known to be. */
  readonly damage: string | null;
  /** Absolute path of the vision projector beside it. */
  readonly projector: string | null;
  /** Trained context in tokens, from the file's metadata. */
  readonly nCtxTrain: number | null;
  /** ms since the epoch. */
  readonly modifiedAt: number;
  /** Content hash of the first file (hex), as its blob is named; null for a plain file. */
  readonly digest: string | null;
  readonly architecture: string | null;
  readonly fileType: number | null;
  /** As its maker wrote it: `270M`, `8x7B`. */
  readonly sizeLabel: string | null;
  /** llama.cpp's number of the way in which it makes one vector of a text's; null where the file does not say. */
  readonly pooling: number | null;
}

export interface CacheSnapshot {
  /** Absolute. */
  readonly dir: string;
  readonly models: readonly CachedModel[];
  /** What the models were made from, in their order: without the repositories of {@link unreadable}. */
  readonly repos: readonly CachedRepo[];
  /** Changes whenever a file that the router could serve comes, goes or changes. */
  readonly signature: string;
  /** Repositories (`owner/name`) whose folder could not be read: what they hold is unknown. */
  readonly unreadable: readonly string[];
  /** What cannot be read in the repositories, each as `PATH (CODE)`. */
  readonly faults: readonly string[];
  /** Folders of the repositories without a fault: the router sees only these. */
  readonly whole: readonly string[];
  /** Device and number of its folder: another disk in its place has others. Null or absent: not known. */
  readonly place?: string | null;
}

export type RouterPhase = "stopped" | "starting" | "ready" | "stopping";
export type BinaryState = "present" | "missing" | "installing";

export interface RouterModel {
  readonly id: string;
  /** unloaded, loading, loaded, sleeping, downloading. */
  readonly value: string;
  readonly failed: boolean;
  /** What the router passes to the model's process: `--ctx-size`, `--port`, … */
  readonly args: readonly string[];
  readonly nCtx: number | null;
}

export interface RouterSnapshot {
  readonly binary: BinaryState;
  readonly phase: RouterPhase;
  readonly pid: number | null;
  /** The preset text and cache signature that the running router read last. */
  readonly loadedPreset: string | null;
  readonly loadedCache: string | null;
  /** True when those were read at its start, not by a reload. */
  readonly freshlyStarted: boolean;
  /** Its models fit nothing into memory where the preset does not say so. */
  readonly isUnfitted: boolean;
  /** Times (ms) of unrequested exits. */
  readonly crashes: readonly number[];
  readonly lastWords: string;
  /** Unknown while it does not answer. */
  readonly models: Knowable<readonly RouterModel[]>;
  /** Since when (ms) a ready router has not answered; null while it does. */
  readonly silentSince: number | null;
  /** Changes with the engine's build; empty where there is none. */
  readonly build: string;
  /** Options of the engine, without dashes; null when they could not be read. */
  readonly knownOptions: ReadonlySet<string> | null;
}

/** What we pulled or imported, so may delete. */
export interface InventoryEntry {
  readonly id: string;
  readonly repo: string;
  readonly tag: string;
  readonly revision: string;
  readonly commit: string;
  readonly files: readonly CachedFile[];
  readonly addedAt: string;
  /** The local file that it was imported from, as it was then. */
  readonly source?: SourceFile;
  /** The document once said `keep`: never pruned. */
  readonly keep: boolean;
  /** ISO 8601: since when the document does not name it; absent: it does, or that was not noted yet. */
  readonly leftAt?: string;
  /** What it was before: files of ours that may still lie in older revisions. */
  readonly former?: readonly FormerRevision[];
}

export interface SourceFile {
  /** Absolute. */
  readonly path: string;
  /** Changes with its size and its time. */
  readonly stamp: string;
}

export type FormerRevision = Pick<InventoryEntry, "commit" | "files">;

export interface WorkerDevice {
  readonly freeBytes: number;
  readonly totalBytes: number;
}

export interface WorkerSnapshot {
  /** As the document names it. */
  readonly address: string;
  /** What the engine is given: the address that was looked at, so that a name cannot mean another machine meanwhile. */
  readonly endpoint: string | null;
  readonly verdict: Verdict;
  /** CamelCase. */
  readonly reason: string;
  readonly message: string;
  /** Of the last connection, ms. */
  readonly latencyMs: number | null;
  /** Of the protocol, as its last hello said. */
  readonly version: string | null;
  /** As they were when nothing used it last. */
  readonly devices: readonly WorkerDevice[] | null;
}

export const speechKinds = ["transcription", "synthesis"] as const;
export type SpeechKind = (typeof speechKinds)[number];

/** An engine of speech: whisper-server, or what speaks. */
export interface SpeechState {
  /** Why there is no engine, and the remedy; null if there is one, and before the first request. */
  readonly problem: string | null;
  readonly phase: RouterPhase;
  readonly pid: number | null;
  /** The file's name of the model, or the voice's id, that it runs with; null while it is stopped. */
  readonly choice: string | null;
  /** What the document names, where it is on disk; empty while it is off. */
  readonly cached: readonly string[];
  /** Times (ms) of unrequested exits. */
  readonly crashes: readonly number[];
  /** Why it ended by itself, in one line; empty where it was stopped. */
  readonly exitReason: string;
  /** Since when (ms) a ready one has not answered; null while it does. */
  readonly silentSince: number | null;
  /** It has queued or running requests. */
  readonly wanted: boolean;
  /** Idle for longer than the limit. */
  readonly idle: boolean;
  /** Its process is due to be replaced. */
  readonly worn: boolean;
}

export type SpeechObserved = Readonly<Record<SpeechKind, SpeechState>>;

/** Nothing runs and nothing was looked at. */
export const restingSpeech: SpeechState = {
  problem: null,
  phase: "stopped",
  pid: null,
  choice: null,
  cached: [],
  crashes: [],
  exitReason: "",
  silentSince: null,
  wanted: false,
  idle: false,
  worn: false,
};

/** A file that the document names beside a model, as observed. */
export type DocumentFile =
  | {
      readonly state: "fit";
      /** Absolute, links resolved. */
      readonly path: string;
      /** Changes with its content: letters, digits and dashes. */
      readonly identity: string;
      readonly isGguf: boolean;
    }
  | { readonly state: "unfit"; readonly why: string };

/** A local file that a model is imported from, with its shards; `stamp` null: missing. */
export interface ObservedSource extends Pick<SourceFile, "path"> {
  readonly stamp: string | null;
  readonly bytes?: number;
}

export interface Observed {
  readonly cache: Knowable<CacheSnapshot>;
  readonly preset: Knowable<PresetFile>;
  readonly router: RouterSnapshot;
  readonly inventory: readonly InventoryEntry[];
  readonly freeBytes: Knowable<number>;
  readonly speech: SpeechObserved;
  /** None where no gateway watches them: the plan of the command line. */
  readonly workers: readonly WorkerSnapshot[];
  /** By their paths as written in the document. */
  readonly sources: ReadonlyMap<string, ObservedSource>;
  /** By their names in the document. */
  readonly documentFiles: ReadonlyMap<string, DocumentFile>;
  readonly loads: LoadFacts;
}

/** Router values of a model with a process: it takes a model slot, and is connected to its RPC workers. */
export const placedValues: ReadonlySet<string> = new Set(["loaded", "loading", "sleeping"]);

/** Whether the model answers; a sleeping one wakes at the next request. */
export function isReadyValue(value: string | undefined): boolean {
  return value === "loaded" || value === "sleeping";
}

/** The value of an option that the model's process was started with. */
export function optionOf({ args }: Pick<RouterModel, "args">, ...names: readonly string[]): string | undefined {
  const at = args.findIndex((argument) => names.includes(argument));
  return at < 0 ? undefined : args[at + 1];
}

/** Ids of the models that have a process, or are about to. */
export function loadedModels(models: readonly RouterModel[]): string[] {
  return models.filter(({ value }) => placedValues.has(value)).map(({ id }) => id);
}

/** Its files, and the projector beside them. */
export function filesOf({ files, projector }: Pick<CachedModel, "files" | "projector">): readonly string[] {
  return projector === null ? files : [...files, projector];
}

/** Whether a model belongs to one of these repositories, ignoring case. */
export function isOfRepo(id: string, repos: readonly string[]): boolean {
  const repo = id.slice(0, id.indexOf(":")).toLowerCase();
  return repos.some((other) => other.toLowerCase() === repo);
}
