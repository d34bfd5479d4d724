// `status` and `ps`: what is true of the running gateway, and which models are loaded.
import { setTimeout as delay } from "node:timers/promises";
import type { ShortStatusBody, StatusBody } from "../client/index.ts";
import { GatewayError } from "../core/errors.ts";
import type { CommandLine, Settings } from "../settings/settings.ts";
import { paintFor } from "./colors.ts";
import { withGateway } from "./connect.ts";
import { modelTable, type ScreenOptions, statusScreen } from "./status-screen.ts";
import { printJson, printProblem } from "./text.ts";

/** ms between two screens. */
const everyMs = 1_000;

export async function statusCommand({ settings, json, flags, given }: CommandLine): Promise<number> {
  const all = given("all");
  if (all !== undefined) return (await import("./replicas.ts")).replicasCommand(all, settings, json);
  if (flags.includes("watch")) return watch(settings, json);
  const answer = await withGateway({ settings }, (client) => client.status());
  if (json) printJson(answer);
  else if ("conditions" in answer) for (const line of statusScreen(answer, screenHere())) console.log(line);
  else printShortStatus(answer, settings);
  return exitCode(answer);
}

/** Exit code 0, with no model loaded too. */
export async function psCommand({ settings, json }: CommandLine): Promise<number> {
  const answer = await withGateway({ settings }, (client) => client.status());
  if (!("conditions" in answer)) {
    printShortStatus(answer, settings);
    return 1;
  }
  const loaded = answer.models.filter(({ runtime }) => runtime && runtime.state !== "unloaded");
  if (json) return printJson(loaded.map(({ id, runtime }) => ({ id, ...runtime, inFlight: answer.inFlight[id] ?? 0 })));
  if (loaded.length === 0) console.log("No model is loaded.");
  else for (const line of modelTable({ ...answer, models: loaded }, screenHere())) console.log(line);
  return 0;
}

function screenHere(): ScreenOptions {
  const { stdout } = process;
  return { now: Date.now(), paint: paintFor(stdout), columns: stdout.isTTY ? stdout.columns : undefined };
}

function exitCode(answer: StatusBody | ShortStatusBody): number {
  const source = "conditions" in answer && answer.conditions.find(({ type }) => type === "SourceValid");
  if (source && source.status === "False") return printProblem(source.message);
  return answer.gateway.ready ? 0 : 2;
}

/** Until Ctrl+C, or the gateway is gone. */
async function watch(settings: Settings, json: boolean): Promise<number> {
  const { stdout } = process;
  if (!stdout.isTTY || json)
    throw new GatewayError("invalid_request", "--watch needs a terminal; programs read /api/events");
  return withGateway({ settings }, async (client) => {
    stdout.write("\u001b[2J");
    for (;;) {
      const answer = await client.status();
      if (!("conditions" in answer)) {
        printShortStatus(answer, settings);
        return 1;
      }
      const lines = statusScreen(answer, screenHere()).slice(0, stdout.rows - 1);
      // From the top, each line to its end, then what is left of the screen before.
      stdout.write(`\u001b[H${lines.map((line) => `${line}\u001b[K\n`).join("")}\u001b[J`);
      await delay(everyMs);
    }
  });
}

/** The status without a license key. */
function printShortStatus({ gateway }: ShortStatusBody, { licenseKey }: Settings): void {
  console.log(`Model Gateway ${gateway.version}: ${gateway.ready ? "ready" : "not ready"}`);
  console.log(
    licenseKey === undefined
      ? "For more, set GATEWAY_LICENSE_KEY to a license key."
      : "No more is shown: the license key in GATEWAY_LICENSE_KEY is unknown or expired.",
  );
}
