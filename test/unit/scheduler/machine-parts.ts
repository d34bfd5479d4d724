// What the simulated machine is made of.
import { GatewayError } from "../../../src/core/errors.ts";
import type { TokenAnswer } from "../../../src/core/token-answer.ts";
import type { Event, Ticket } from "../../../src/scheduler/state/events.ts";
import type { Limits, Loaded, ModelRules, World } from "../../../src/scheduler/state/world.ts";
import type { SimulatedMemory } from "./simulated-memory.ts";

export type LoadOutcome = "loads" | "ends" | "short" | "stalls" | "refused" | "breaksOff" | "deaf";

/** What a process does when it is asked for a token; `silent`: nothing, for ever. */
export type TokenOutcome = TokenAnswer["kind"] | "silent";

export interface Client {
  readonly ticket: Ticket;
  readonly answerMs: number;
  state: "elsewhere" | "waits" | "answers" | "answered" | "rejected" | "left";
  error: GatewayError | null;
}

export interface Process {
  value: "loading" | "loaded";
  readonly origin: string;
  hasGivenToken: boolean;
  /** Another program had it loaded. */
  readonly isForeign?: boolean;
}

/** An event without its time. */
export type EventBody = Event extends infer E ? (E extends Event ? Omit<E, "now"> : never) : never;

export interface Change {
  readonly models: readonly string[] | "all";
  isDrained: boolean;
}

export const limits: Limits = {
  queueLimit: 12,
  drainMs: 20_000,
  loadTimeoutMs: 60_000,
  routerWaitMs: 30_000,
  keepAliveMs: 120_000,
};

/** What a process says; null: nothing, for ever. */
export function tokenOf(process: Process | undefined, origin: string, token: TokenOutcome): TokenAnswer | null {
  if (process?.origin !== origin) return { kind: "none" };
  if (token === "silent") return null;
  process.hasGivenToken ||= token === "given";
  return token === "refused" ? { kind: token, why: "500" } : { kind: token };
}

interface Watched extends Pick<World, "isReady" | "isBehind" | "engineProblem" | "refusal"> {
  readonly listed: ReadonlySet<string>;
  readonly processes: ReadonlyMap<string, Process>;
  readonly loaded: ReadonlyMap<string, Loaded>;
  readonly slots: number;
  readonly file: number;
  readonly pinned: ReadonlySet<string>;
  readonly cached: ReadonlySet<string>;
  readonly rules: ReadonlyMap<string, ModelRules>;
  readonly memory: SimulatedMemory;
  readonly fallbacks: ReadonlySet<string>;
}

/** The machine as the scheduler is shown it. */
export function worldOf(machine: Watched): World {
  const { isReady, isBehind, engineProblem, refusal, listed, processes } = machine;
  const known = isReady ? [...listed] : [];
  return {
    isReady,
    listed: new Map(known.map((id) => [id, processes.get(id)?.value ?? "unloaded"])),
    loaded: new Map(machine.loaded),
    modelsMax: machine.slots,
    isBehind,
    inputs: String(machine.file),
    engineProblem,
    refusal,
    rules: new Map(machine.rules),
    hasFallback: (id) => machine.fallbacks.has(id),
    isPinned: (id) => machine.pinned.has(id),
    isCached: (id) => machine.cached.has(id),
    memory: machine.memory.seen(),
  };
}

export const brokenLoad = { kind: "loadEnded", why: "it broke", workers: "" } as const;
export const refused = (): GatewayError => new GatewayError("router_unavailable", "no");
export const brokenOff = (): GatewayError =>
  new GatewayError("router_unavailable", "no", { cause: new Error("ECONNRESET") });
