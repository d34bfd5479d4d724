// `wait --for synced|ready|model=ID`: until the running gateway is so.
import { setTimeout as delay } from "node:timers/promises";
import type { GatewayClient, StatusBody } from "../client/index.ts";
import { GatewayError } from "../core/errors.ts";
import { steadyNow } from "../core/steady.ts";
import { wholeNumber } from "../settings/kinds.ts";
import type { CommandLine, Settings } from "../settings/settings.ts";
import { GatewayAway, withGateway } from "./connect.ts";
import { printJson, printProblem } from "./text.ts";
import { type Goal, type Verdict, verdictOf } from "./wait-goal.ts";

/** ms. Not by events: a pass that changes nothing has none, and their streams are limited. */
const everyMs = 200;

export async function waitCommand({ settings, json, given }: CommandLine): Promise<number> {
  const generation = given("generation");
  const goal: Goal = {
    for: goalOf(given("for")),
    revision: given("revision"),
    generation:
      generation === undefined ? undefined : wholeNumber(generation, "--generation", 0, Number.MAX_SAFE_INTEGER),
  };
  const seconds = timeoutOf(given("timeout"));
  return printOutcome(await waitFor(settings, goal, seconds), goal, seconds, json);
}

function goalOf(text: string | undefined): Goal["for"] {
  if (text === "synced" || text === "ready") return text;
  const model = text?.startsWith("model=") ? text.slice("model=".length) : "";
  if (model !== "") return { model };
  throw new GatewayError("invalid_request", "wait needs --for synced, --for ready or --for model=ID");
}

/** Seconds. */
export function timeoutOf(given: string | undefined): number {
  return wholeNumber(given ?? "300", "--timeout", 0, 86_400);
}

export interface Outcome extends Verdict {
  readonly status: StatusBody;
}

/**
 * Resolves when the goal is met, cannot be met without help, or time is up. A gateway that is away may be starting, or starting
 * again. Errors: `invalid_request` where it does not come, `unauthorized`, those of the gateway.
 */
export async function waitFor(settings: Settings, goal: Goal, seconds: number): Promise<Outcome> {
  const deadline = steadyNow() + seconds * 1000;
  for (;;) {
    try {
      return await withGateway({ settings }, (client) => follow(client, goal, deadline));
    } catch (error) {
      if (!(error instanceof GatewayAway) || steadyNow() >= deadline) throw error;
    }
    await delay(everyMs);
  }
}

async function follow(client: GatewayClient, goal: Goal, deadline: number): Promise<Outcome> {
  for (;;) {
    const status = await client.status();
    if (!("conditions" in status))
      throw new GatewayError("unauthorized", "the whole status needs a license key: set GATEWAY_LICENSE_KEY");
    const verdict = verdictOf(status, goal);
    if (verdict.state !== "waiting" || steadyNow() >= deadline) return { ...verdict, status };
    await delay(everyMs);
  }
}

/** Exit code 0: met. */
export function printOutcome(
  { state, status, reason, message }: Outcome,
  goal: Goal,
  seconds: number,
  json: boolean,
): number {
  const { generation, observedGeneration, applied } = status;
  const isMet = state === "met";
  const [what, not] =
    typeof goal.for === "string"
      ? [goal.for, `not ${goal.for}`]
      : [`${goal.for.model} ready`, `${goal.for.model} not ready`];
  if (json) printJson({ met: isMet, for: what, reason, message, generation, observedGeneration, applied });
  else if (isMet) console.log(`${what}: generation ${generation}. ${message}`);
  else printProblem(`${not}${state === "waiting" ? ` within ${seconds} s` : ""}: ${reason}: ${message}`);
  return isMet ? 0 : 1;
}
