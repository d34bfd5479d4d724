// `plan` and `status`: call the running gateway; without one, `plan` observes the machine itself.
import { realpath } from "node:fs/promises";
import type { PlanBody, ShortStatusBody, StatusBody } from "../client/index.ts";
import { GatewayError } from "../core/errors.ts";
import type { CommandLine, Settings } from "../settings/settings.ts";
import { withGateway } from "./connect.ts";
import { amounts } from "./progress.ts";
import { printJson } from "./text.ts";

export async function planCommand({ settings, json, flags }: CommandLine): Promise<number> {
  const without = async (): Promise<PlanBody> => (await import("./offline.ts")).offlinePlan(settings);
  const answer = await withGateway({ settings, without }, async (client) => {
    const theirs = await client.plan();
    if (flags.includes("config")) await requireDocument(settings, theirs);
    return theirs;
  });
  if (json) printJson(answer);
  else printPlan(answer);
  if (answer.source?.valid === false) return brokenSource(answer.source.message);
  return isEmpty(answer) ? 0 : 2;
}

/** Errors: `invalid_request` if the gateway that answered has another document than the flag names. */
async function requireDocument({ configPath }: Settings, { source }: PlanBody): Promise<void> {
  const theirs = source?.path ?? "";
  if ((await realPath(configPath)) === (await realPath(theirs))) return;
  throw new GatewayError(
    "invalid_request",
    `the gateway has the document ${theirs}, not ${configPath}: leave out --config`,
  );
}

/** Of what is not there, its name. */
function realPath(path: string): Promise<string> {
  return realpath(path).catch(() => path);
}

/** An error, whatever else is true: what a person wrote is not in force. */
function brokenSource(message: string): number {
  console.error(`model-gateway: ${message}`);
  return 1;
}

function isEmpty({ actions, running, held, findings }: PlanBody): boolean {
  return actions.length + running.length + held.length + Object.keys(findings).length === 0;
}

function printPlan(answer: PlanBody): void {
  const { actions, running, held, unmanaged, spared, findings } = answer;
  for (const { kind, message, reason } of running) console.log(`* ${kind}: ${message} (${reason}, under way)`);
  for (const { kind, message, reason } of actions) console.log(`+ ${kind}: ${message} (${reason})`);
  for (const { kind, message, because, until } of held)
    console.log(`- ${kind}: ${message} (held${until === null ? "" : ` until ${until}`}: ${because})`);
  const problems = Object.entries(findings);
  for (const [id, problem] of problems) console.log(`! ${id}: ${problem}`);
  const listed = [...[...running, ...actions, ...held].map(({ model }) => model), ...spared];
  for (const id of unmanaged.filter((name) => !listed.includes(name)))
    console.log(`  ${id} is in the cache and not in the document: unmanaged`);
  for (const id of spared)
    console.log(
      `  ${id} left the document when its list of models was emptied; prune leaves it unless allowEmpty is true`,
    );
  console.log(
    isEmpty(answer)
      ? "Nothing to do."
      : `Plan: ${actions.length} to do, ${running.length} under way, ${held.length} held${problems.length > 0 ? `, ${problems.length} that cannot be done` : ""}.`,
  );
}

export async function statusCommand({ settings, json }: CommandLine): Promise<number> {
  const answer = await withGateway({ settings }, (client) => client.status());
  if (json) printJson(answer);
  else if ("conditions" in answer) printStatus(answer);
  else printShortStatus(answer, settings);
  const source = "conditions" in answer && answer.conditions.find(({ type }) => type === "SourceValid");
  if (source && source.status === "False") return brokenSource(source.message);
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
