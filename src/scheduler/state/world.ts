// What the scheduler decides by, as plain data: its limits, and the machine as it was last observed.
import type { GatewayError } from "../../core/errors.ts";

/** Bytes by device as the engine names them; `Host` is main memory. */
export type ByDevice = ReadonlyMap<string, number>;

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

/** What the document sets for one model. */
export interface ModelRules {
  /** As of {@link Limits}, which count where they are absent. */
  readonly keepAliveMs?: number;
  readonly queueLimit?: number;
  /** 0 if absent. */
  readonly priority?: number;
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
  /** By id. */
  readonly rules: ReadonlyMap<string, ModelRules>;
  /** Whether the document keeps the model loaded. */
  isPinned(id: string): boolean;
  /** Whether settings that have worked can take the place of the ones that the router has read. */
  hasFallback(id: string): boolean;
  /** False: the cache is known not to hold the model. */
  isCached(id: string): boolean;
  readonly memory: Memory;
}

/** Of the machine as it is when it is asked. */
export interface Memory {
  /** What the model takes once it is loaded; null: that cannot be known; undefined: it is not known yet. */
  need(id: string): ByDevice | null | undefined;
  /** What a model in a slot takes: its need, or what it holds where that is more. */
  taken(id: string): ByDevice;
  /** What all models together may take: what their processes hold already, loading ones too, is in it. */
  limits(): ByDevice;
  /** Processes of a router that is gone still hold memory, which counts as taken by others. */
  hasLeftovers(): boolean;
  /** What the model needs, what pinned models that take so much leave, and what would fit, if that is known. */
  refusal(id: string, pinned: readonly ByDevice[]): string;
}

const noBytes: ByDevice = new Map();

/** Nothing is known: model slots are counted. */
export const unknownMemory: Memory = {
  need: () => null,
  taken: () => noBytes,
  limits: () => noBytes,
  hasLeftovers: () => false,
  refusal: () => "",
};

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
  rules: new Map(),
  isPinned: () => false,
  hasFallback: () => false,
  isCached: () => true,
  memory: unknownMemory,
};
