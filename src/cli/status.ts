// `status`: prints the status of the running gateway.
import type { ShortStatusBody, StatusBody } from "../client/index.ts";
import type { CommandLine, Settings } from "../settings/settings.ts";
import { withGateway } from "./connect.ts";
import { amounts } from "./progress.ts";
import { printJson, printProblem } from "./text.ts";

export async function statusCommand({ settings, json }: CommandLine): Promise<number> {
  const answer = await withGateway({ settings }, (client) => client.status());
  if (json) printJson(answer);
  else if ("conditions" in answer) printStatus(answer);
  else printShortStatus(answer, settings);
  const source = "conditions" in answer && answer.conditions.find(({ type }) => type === "SourceValid");
  if (source && source.status === "False") return printProblem(source.message);
  return answer.gateway.ready ? 0 : 2;
}

function printStatus({ conditions, models, gateway, running, inFlight, waiting }: StatusBody): void {
  console.log(`Model Gateway ${gateway.version}`);
  printConditions(conditions);
  for (const { message, progress } of running) console.log(`* ${message}${progress ? `: ${amounts(progress)}` : ""}`);
  for (const model of models) {
    console.log(model.id);
    printConditions(model.conditions);
    const answers = inFlight[model.id];
    if (answers !== undefined) console.log(`  ${answers} answer(s) under way`);
    for (const each of waiting.filter((entry) => entry.model === model.id))
      console.log(`  ${each.requests} waiting for ${each.for}, the oldest for ${Math.round(each.oldestMs / 1000)} s`);
  }
}

function printConditions(conditions: StatusBody["conditions"]): void {
  for (const { type, status, reason, message } of conditions)
    console.log(`  ${type.padEnd(13)} ${status.padEnd(8)} ${reason}: ${message}`);
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
