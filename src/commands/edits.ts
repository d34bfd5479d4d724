// What a call may change. Each is one edit of the desired document, a wake of the loop, and a wait for the outcome: the
// families' routes only put it into their own words. Types only; the edits themselves are beside this file.

import type { Progress } from "../plan/actions.ts";

export interface Call {
  /** Who asks, as it stands beside the field it sets: `http:POST /api/set-ctx-size`. */
  readonly by: string;
  /** Aborted when the client left. */
  readonly signal: AbortSignal;
}

export interface PullCall extends Call {
  /** The document goes on wanting the model when the client has left. */
  readonly keep: boolean;
}

export interface RemoveCall extends Call {
  /** Says what would be removed, and removes nothing. */
  readonly dryRun?: boolean;
}

export interface Removed {
  readonly id: string;
  readonly deletedFiles: number;
  readonly freedBytes: number;
  /** It had a context size of its own in router.preset.ini. */
  readonly removedPresetSection: boolean;
}

/** How a pull goes on. */
export type PullNews =
  | { readonly kind: "waiting"; readonly message: string }
  | { readonly kind: "progress"; readonly progress: Progress }
  /** The files are there; the router is being told. */
  | { readonly kind: "fetched" }
  /** A try failed, another follows by itself. */
  | { readonly kind: "retrying"; readonly message: string };

export interface RpcRoster {
  readonly mode: "single" | "rpc";
  readonly workers: readonly string[];
  /** Workers that cannot be used as things are, and why. */
  readonly notInUse: readonly { readonly address: string; readonly reason: string; readonly message: string }[];
}

/**
 * All resolve when the outcome is in force. Common errors: `model_not_found` with the nearest ids, `invalid_request`,
 * `suspended` (noted, not made), `wait_timeout` (noted, goes on), and what the failed action said.
 */
export interface Edits {
  /**
   * Positive, and not above the trained context where that is known; one that is too small for the engine is raised. Adopts a
   * cached model that the document does not name. Resolves with the size that is in force.
   */
  setContextSize(name: string, ctxSize: number, call: Call): Promise<{ readonly id: string; readonly ctxSize: number }>;
  /** Unloads it once its answers are through; the files stay. */
  eject(name: string, call: Call): Promise<{ readonly id: string }>;
  /** Unloads it, deletes its files, takes it out of the document and the preset, and has the router told. */
  remove(name: string, call: RemoveCall): Promise<Removed>;
  /**
   * Has it pulled, or joins a pull under way; resolves once the router lists it. A client that leaves, and a pull that
   * fails for good, take out of the document what this call had put in; with `keep` a client that leaves takes out nothing, and
   * what lies outside (a hub that is away, a full disk) is waited for.
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
