// `plan`: prints the plan of the running gateway; without one, of the machine as it is observed here.
import { realpath } from "node:fs/promises";
import type { PlanBody } from "../client/index.ts";
import { GatewayError } from "../core/errors.ts";
import type { CommandLine, Settings } from "../settings/settings.ts";
import { withGateway } from "./connect.ts";
import { printJson, printProblem } from "./text.ts";

export async function planCommand({ settings, json, flags }: CommandLine): Promise<number> {
  const without = async (): Promise<PlanBody> => (await import("./offline.ts")).offlinePlan(settings);
  const answer = await withGateway({ settings, without }, async (client) => {
    const theirs = await client.plan();
    if (flags.includes("config")) await requireDocument(settings, theirs);
    return theirs;
  });
  if (json) printJson(answer);
  else printPlan(answer);
  if (answer.source?.valid === false) return printProblem(answer.source.message);
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

export function isEmpty({ actions, running, held, findings }: PlanBody): boolean {
  return actions.length + running.length + held.length + Object.keys(findings).length === 0;
}

export function printPlan(answer: PlanBody): void {
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
