// The changes that a call may make. Each is one edit of the document, a wake of the loop, and a wait for the outcome; the routes
// only translate. Types only; the edits are beside this file.

import type { Progress } from "../plan/actions.ts";

export interface Call {
  /** The author of the fields that it sets: `http:POST /api/set-ctx-size`. */
  readonly by: string;
  /** Aborted when the client left. */
  readonly signal: AbortSignal;
}

export interface PullCall extends Call {
  /** The model stays in the document when the client has left. */
  readonly keep: boolean;
}

export interface RemoveCall extends Call {
  /** Returns what would be removed, and removes nothing. */
  readonly dryRun?: boolean;
}

export interface Removed {
  readonly id: string;
  readonly deletedFiles: number;
  readonly freedBytes: number;
  /** It had a context size of its own in router.preset.ini. */
  readonly removedPresetSection: boolean;
}

/** Progress of a pull. */
export type PullNews =
  | { readonly kind: "waiting"; readonly message: string }
  | { readonly kind: "progress"; readonly progress: Progress }
  /** The files are present; the router reloads. */
  | { readonly kind: "fetched" }
  /** A try failed, another one follows. */
  | { readonly kind: "retrying"; readonly message: string };

export interface RpcRoster {
  readonly mode: "single" | "rpc";
  readonly workers: readonly string[];
  /** Workers that cannot be used as things are, and why. */
  readonly notInUse: readonly { readonly address: string; readonly reason: string; readonly message: string }[];
}

/**
 * All resolve when the outcome is in force. Common errors: `model_not_found` with the nearest ids, `invalid_request`,
 * `suspended` (stored, not applied), `wait_timeout` (stored, continues), and errors of the failed action.
 */
export interface Edits {
  /**
   * Positive, and not above the trained context where that is known; one that is too small for the engine is raised. Adopts a
   * cached model that the document does not name. Resolves with the size that is in force.
   */
  setContextSize(name: string, ctxSize: number, call: Call): Promise<{ readonly id: string; readonly ctxSize: number }>;
  /** Drains and unloads it; the files stay. */
  eject(name: string, call: Call): Promise<{ readonly id: string }>;
  /** Unloads it, deletes its files, removes it from the document and the preset, and reloads the router. */
  remove(name: string, call: RemoveCall): Promise<Removed>;
  /**
   * Pulls it, or joins a running pull; resolves once the router lists it. When the client leaves, or the pull fails for good, what
   * this call added to the document is removed again; with `keep` it stays, and the pull waits for outside causes (an unreachable
   * hub, a full disk).
   */
  pull(name: string, call: PullCall, tell: (news: PullNews) => void): Promise<{ readonly id: string }>;
  /** Gives a model another name. */
  addAlias(source: string, alias: string, call: Call): Promise<void>;
  /** False where it is no alias. */
  removeAlias(alias: string, call: Call): Promise<boolean>;
  setRpcMode(mode: "single" | "rpc", call: Call): Promise<RpcRoster>;
  addWorkers(workers: readonly string[], call: Call): Promise<RpcRoster>;
  removeWorkers(workers: readonly string[], call: Call): Promise<RpcRoster>;
}
