// `apply -f FILE|-`: has the running gateway apply the text of a document, and waits until this text is in force.
import { createHash } from "node:crypto";
import type { Desired } from "../client/index.ts";
import { GatewayError } from "../core/errors.ts";
import type { CommandLine } from "../settings/settings.ts";
import { withGateway } from "./connect.ts";
import { type DocumentFile, givenDocument, unlessInvalid } from "./document-file.ts";
import { showPlan } from "./plan.ts";
import { printJson } from "./text.ts";
import { type Outcome, printOutcome, timeoutOf, waitFor } from "./wait.ts";

/** Exit code 2: a dry run has something to do. */
export async function applyCommand({ settings, json, force, flags, given }: CommandLine): Promise<number> {
  const [isTry, isWaiting] = [flags.includes("dry-run"), flags.includes("wait")];
  if (isTry && isWaiting) throw new GatewayError("invalid_request", "--dry-run changes nothing to --wait for");
  if (flags.includes("timeout") && !isWaiting)
    throw new GatewayError("invalid_request", "--timeout is of --wait: add it");
  const seconds = timeoutOf(given("timeout"));
  const file = await givenDocument(given("file"));
  if (isTry) {
    const plan = await unlessInvalid(file, () =>
      withGateway({ settings }, (client) => client.desired.planApply(file.bytes)),
    );
    return plan ? showPlan(plan, json) : 1;
  }
  const revision = given("revision");
  const applied = await unlessInvalid(file, () =>
    withGateway({ settings, change: { force } }, async (client) => ({
      before: await client.desired.get(),
      after: await client.desired.apply(file.bytes, { revision }),
    })),
  );
  if (applied === null) return 1;
  const { before, after } = applied;
  if (json && !isWaiting) return printJson(after);
  if (!json) printApplied(file, before, after);
  if (!isWaiting) return 0;
  const sha256 = createHash("sha256").update(file.bytes).digest("hex");
  const goal = { for: "synced", sha256, revision, generation: after.generation } as const;
  const outcome = await waitFor(settings, goal, seconds);
  return printOutcome(outcome.state === "met" ? { ...outcome, ...overridden(after) } : outcome, goal, seconds, json);
}

/** The text is not in force where a call has set another value. */
function overridden({ differsFromFile }: Desired): Pick<Outcome, "state" | "reason" | "message"> | undefined {
  const paths = differsFromFile.filter(({ file }) => (file ?? null) !== null).map(({ path }) => path);
  if (paths.length === 0) return undefined;
  const message = `Calls have set other values than this text. Take them out: \`reset ${paths.join(" ")}\`.`;
  return { state: "failed", reason: "Overridden", message };
}

function printApplied({ name }: DocumentFile, before: Desired, after: Desired): void {
  const { generation, applied } = after;
  const revision = applied?.revision ? `, revision ${applied.revision}` : "";
  const which = `generation ${generation}, sha256 ${applied?.sha256?.slice(0, 12)}${revision}`;
  console.log(`${name} is applied: ${which}${generation === before.generation ? "; it changes nothing" : ""}.`);
  if (after.differsFromFile.length === 0) return;
  const fields = after.differsFromFile.map(({ path, setBy }) => `${path} (${setBy})`).join(", ");
  console.log(`Calls have set other values, which stay: ${fields}. \`reset\` takes them out.`);
}
