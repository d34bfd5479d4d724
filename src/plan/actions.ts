// The actions of a plan, and what may hold them back. Pure.
import type { ErrorCode } from "../core/error-catalog.ts";
import { followedBy } from "../core/errors.ts";
import type { SpeechKind } from "./observed.ts";

export const actionKinds = [
  "model.pull",
  "model.import",
  "model.remove",
  "cache.gc",
  "preset.write",
  "router.start",
  "router.reload",
  "router.restart",
  "voice.pull",
  "transcription.pull",
  "speech.start",
  "speech.stop",
] as const;

export type ActionKind = (typeof actionKinds)[number];
/** Speech has lanes of its own: neither a reload nor a model of many gigabytes holds it up, nor the other way. */
export type Lane = "control" | "transfer" | "speech" | "speech-transfer";

interface ActionBase {
  /** The target; at most one action per key is planned or running. */
  readonly key: string;
  /** CamelCase. */
  readonly reason: string;
  readonly message: string;
  /** Models whose loaded instance it ends: their answers in flight are awaited first. */
  readonly disrupts: readonly string[];
}

export type Action = ActionBase &
  /** `verify`: cached files are hashed again, as one is damaged. */
  (
    | {
        readonly kind: "model.pull";
        readonly model: string;
        readonly revision: string | undefined;
        readonly verify?: boolean;
      }
    | { readonly kind: "model.import"; readonly model: string; readonly source: string; readonly verify?: boolean }
    /** `requested`: by a request, also files of other programs; else only what is in the inventory. */
    | { readonly kind: "model.remove"; readonly model: string; readonly requested: boolean }
    /** Never planned: only requested. */
    | { readonly kind: "cache.gc" }
    /** `replaces`: the text that it was made from. */
    | { readonly kind: "preset.write"; readonly text: string; readonly replaces: string }
    | { readonly kind: "router.start" }
    /** `changes`: models with other settings or files, kept unloaded meanwhile. */
    | { readonly kind: "router.reload"; readonly changes: readonly string[] }
    | { readonly kind: "router.restart" }
    /** `requested`: by a request, independent of the document. */
    | { readonly kind: "voice.pull"; readonly voice: string; readonly requested?: true }
    | { readonly kind: "transcription.pull"; readonly file: string }
    /** `choice`: the model's file or the voice. */
    | { readonly kind: "speech.start"; readonly engine: SpeechKind; readonly choice: string }
    | { readonly kind: "speech.stop"; readonly engine: SpeechKind }
  );

/** Whether it changes the model cache. */
export function writesCache(kind: ActionKind): boolean {
  return kind === "model.remove" || kind === "cache.gc" || /\.(?:pull|import)$/.test(kind);
}

export function laneOf(kind: ActionKind): Lane {
  if (kind === "speech.start" || kind === "speech.stop") return "speech";
  if (kind === "voice.pull" || kind === "transcription.pull") return "speech-transfer";
  return /\.(?:pull|import)$/.test(kind) ? "transfer" : "control";
}

/** Progress of an action; in bytes if it moves bytes. */
export interface Progress {
  readonly phase: string;
  readonly completed: number;
  readonly total: number;
  readonly file?: string;
  readonly digest?: string;
  readonly fileCompleted?: number;
  readonly fileTotal?: number;
  /** Smoothed; 0 while nothing comes in. */
  readonly bytesPerSecond?: number;
  /** For the rest; null: unknown yet. */
  readonly secondsLeft?: number | null;
}

export interface RunningAction {
  readonly action: Action;
  readonly lane: Lane;
  /** ms; null while it waits in its lane. */
  readonly startedAt: number | null;
  readonly progress: Progress | null;
}

/** What an earlier try of an action left behind. */
export interface BackoffEntry {
  readonly failures: number;
  /** Not before this time, ms. */
  readonly until: number;
  /** Not before the document or the engine changes, or a retry is requested. */
  readonly stalled: boolean;
  /** The disk was too full for it: what it needs. */
  readonly neededBytes?: number | undefined;
  readonly code: ErrorCode;
  readonly reason: string;
  readonly message: string;
  readonly hint: string;
}

export interface HeldAction {
  readonly action: Action;
  /**
   * `waiting`: another action comes first; `settling`: the document has just changed; `prune`: last, and after `pruneAfter`;
   * `writer`: another gateway writes the cache.
   */
  readonly why: "suspended" | "backoff" | "stalled" | "waiting" | "room" | "settling" | "prune" | "writer";
  /** For people. */
  readonly because: string;
  readonly until: number | null;
}

export interface Plan {
  /** To be started now. */
  readonly actions: readonly Action[];
  readonly held: readonly HeldAction[];
  /** Cached models that the document does not name. */
  readonly unmanaged: readonly string[];
  /** Would be pruned, but left the document when a list of models was emptied. */
  readonly spared: readonly string[];
  /** Findings that no action repairs, by model id. */
  readonly findings: ReadonlyMap<string, string>;
  /** Of them, models whose settings failed to load: the last ones that worked are in force. */
  readonly rolledBack: ReadonlySet<string>;
  /** Models whose context is to be chosen, by the router's id: what they would be loaded with besides. */
  readonly autos: ReadonlyMap<string, ReadonlyMap<string, string>>;
}

export interface PlanContext {
  /** ms since the epoch. */
  readonly now: number;
  readonly backoff: ReadonlyMap<string, BackoffEntry>;
  /** A running router without a response for this long hangs. */
  readonly silenceLimitMs: number;
  /** Another gateway writes the model cache: what is missing there is waited for, and nothing is deleted. */
  readonly isReader?: boolean | undefined;
  /** Before this (ms) the document is likely to change again: a running router does not reload yet. */
  readonly settledAt?: number;
  /** Keys of the actions that have begun. */
  readonly underWay?: readonly string[];
}

export interface Candidate {
  readonly action: Action;
  /** ms; absent: at once. */
  readonly notBefore?: number;
  /** What comes first. It stays in the plan: one that hides a deletion misleads. */
  readonly waits?: string;
  /** A hundred changes in a second are to cost one reload. */
  readonly settles?: boolean;
  /** A prune whose time has not come, and why. */
  readonly prune?: { readonly because: string; readonly until: number | null };
  /** Applies nothing of the document, so `suspend` does not hold it. */
  readonly isUpkeep?: boolean;
}

/** Why it failed, and when it is retried. `now` in ms, by the clock of `until`. */
export function withRetry({ message, until, stalled }: BackoffEntry, now: number): string {
  return stalled ? message : followedBy(message, `Will retry in ${Math.max(1, Math.ceil((until - now) / 1000))} s`);
}

/** Nothing left to do now: prunes have a time of their own. */
export function isAtRest({ actions, held }: Plan): boolean {
  return actions.length === 0 && held.every(({ why }) => why === "prune");
}

export function backoffKey({ kind, key }: Pick<Action, "kind" | "key">): string {
  return `${kind} ${key}`;
}
