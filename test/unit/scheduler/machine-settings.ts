// What a test sets of the simulated machine, before or while it runs.
import type { GatewayError } from "../../../src/core/errors.ts";
import type { WorkersVerdict } from "../../../src/scheduler/state/events.ts";
import type { ModelRules } from "../../../src/scheduler/state/world.ts";
import type { LoadOutcome, TokenOutcome } from "./machine-parts.ts";
import { SimulatedMemory } from "./simulated-memory.ts";
import { Clock } from "./virtual-time.ts";

export abstract class Settings extends Clock {
  slots = 1;
  parallel = 1;
  isReady = true;
  isDeaf = false;
  loadMs = 2_000;
  unloadMs = 20;
  outcome: LoadOutcome = "loads";
  tokenMs = 10;
  token: TokenOutcome = "given";
  unloadFails = false;
  verdict: WorkersVerdict = { kind: "ready", stallMs: Number.POSITIVE_INFINITY };
  end = { isWorkerLost: false, isFault: false };
  /** Models with settings that have worked, and ms until the router has read those. */
  readonly fallbacks = new Set<string>();
  fallbackMs = 50;
  refusal: GatewayError | null = null;
  engineProblem: GatewayError | null = null;
  readonly listed = new Set<string>();
  readonly cached = new Set<string>();
  readonly pinned = new Set<string>();
  readonly memory = new SimulatedMemory();
  readonly rules = new Map<string, ModelRules>();
}
