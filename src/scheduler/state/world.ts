// What the scheduler decides by, as plain data: its limits, and the machine as it was last observed.
import type { GatewayError } from "../../core/errors.ts";

export interface Limits {
  /** Requests per model, waiting and in flight together. */
  readonly queueLimit: number;
  readonly drainMs: number;
  readonly loadTimeoutMs: number;
  readonly routerWaitMs: number;
  /** How long an idle model stays loaded where no request sets it; Infinity: for ever. */
  readonly keepAliveMs: number;
}

/** A model that answers. */
export interface Loaded {
  /** Another address is another process. */
  readonly origin: string;
  /** Requests that its process computes at once. */
  readonly slots: number;
}

/** The machine as it was at the last `observed` event. */
export interface World {
  /** The router answers. */
  readonly isReady: boolean;
  /** The router's value for each model by id (`unloaded`, `loading`, `loaded`, `sleeping`, `downloading`). */
  readonly listed: ReadonlyMap<string, string>;
  /** By id. They answer while their router is silent, too. */
  readonly loaded: ReadonlyMap<string, Loaded>;
  /** Model slots. */
  readonly modelsMax: number;
  /** The router has yet to read the preset that the document asks for: what loads now would load again. */
  readonly isBehind: boolean;
  /** What the router has read, the preset and the cache: with another one a load may end otherwise. */
  readonly inputs: string;
  /** Why there will be no router; null: there is one, or there will be. */
  readonly engineProblem: GatewayError | null;
  /** Why no model can be loaded; null: they can. */
  readonly refusal: GatewayError | null;
  /** Whether the document keeps the model loaded. */
  isPinned(id: string): boolean;
  /** Whether settings that have worked can take the place of the ones that the router has read. */
  hasFallback(id: string): boolean;
  /** False: the cache is known not to hold the model. */
  isCached(id: string): boolean;
}

/** Before the first `observed` event. */
export const unknownWorld: World = {
  isReady: false,
  listed: new Map(),
  loaded: new Map(),
  modelsMax: 1,
  isBehind: false,
  inputs: "",
  engineProblem: null,
  refusal: null,
  isPinned: () => false,
  hasFallback: () => false,
  isCached: () => true,
};
