// `plan`: prints the plan of the running gateway, with -f that for another document; without a gateway, of the machine as it is
// observed here.
import { realpath } from "node:fs/promises";
import type { PlanBody } from "../client/index.ts";
import { GatewayError } from "../core/errors.ts";
import type { CommandLine, Settings } from "../settings/settings.ts";
import { paintFor } from "./colors.ts";
import { withGateway } from "./connect.ts";
import { givenDocument, parseDocumentFile, unlessInvalid } from "./document-file.ts";
import { isEmpty, planLines } from "./plan-text.ts";
import { printJson, printProblem } from "./text.ts";

/** Exit code 1 also where the document in force is not that of gateway.yaml, and where a pull is sure to fail. */
export async function planCommand({ settings, json, flags, given }: CommandLine): Promise<number> {
  const path = given("file");
  const file = path === undefined ? null : await givenDocument(path);
  const isOffline = flags.includes("offline");
  const without = async (): Promise<PlanBody> => {
    if (file) await parseDocumentFile(file);
    return (await import("./offline.ts")).offlinePlan(settings, { file, isOffline });
  };
  const plan = (): Promise<PlanBody> =>
    withGateway({ settings, without }, async (client) => {
      if (file) return client.desired.planApply(file.bytes, { offline: isOffline });
      const theirs = await client.plan({ offline: isOffline });
      if (flags.includes("config")) await requireDocument(settings, theirs);
      return theirs;
    });
  const found = file ? await unlessInvalid(file, plan) : await plan();
  return found ? showPlan(found, json) : 1;
}

/** Answers with the exit code. */
export function showPlan(plan: PlanBody, json: boolean): number {
  if (json) printJson(plan);
  else for (const line of planLines(plan, paintFor(process.stdout))) console.log(line);
  if (plan.source?.valid === false) return printProblem(plan.source.message);
  if (plan.problems.some(({ code }) => code !== undefined)) return 1;
  return isEmpty(plan) ? 0 : 2;
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
