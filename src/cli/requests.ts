// `requests`, `requests cancel`: what is in flight, and the end of one. `reconcile`: the next try of what failed.
import { GatewayError } from "../core/errors.ts";
import { wholeNumber } from "../settings/kinds.ts";
import type { CommandLine } from "../settings/settings.ts";
import { withGateway } from "./connect.ts";
import { ageText, printJson, printOutcomeOf, printTable } from "./text.ts";

export async function requestsCommand({ settings, json }: CommandLine): Promise<number> {
  const found = await withGateway({ settings }, (client) => client.requests.list());
  if (json) return printJson(found);
  const now = Date.now();
  const rows = found.map(({ id, model, route, state, startedAt }) => [
    String(id),
    model,
    route,
    state,
    ageText(startedAt, now),
  ]);
  if (rows.length === 0) console.log("No request is in flight.");
  else printTable([["ID", "MODEL", "ROUTE", "STATE", "SINCE"], ...rows]);
  return 0;
}

export async function cancelRequestCommand({ settings, operands, force }: CommandLine): Promise<number> {
  const id = wholeNumber(operands[0] ?? "", "ID", 1);
  const isCancelled = await withGateway({ settings, change: { force } }, (client) => client.requests.cancel(id));
  if (!isCancelled)
    throw new GatewayError(
      "invalid_request",
      `no request ${id} is in flight: \`${settings.command("requests")}\` lists them`,
    );
  console.log(`Request ${id} is cancelled.`);
  return 0;
}

/** Waits until all is as the document says, or cannot be. */
export async function reconcileCommand({ settings, json, force }: CommandLine): Promise<number> {
  const after = await withGateway({ settings, change: { force } }, (client) => client.reconcile({ wait: true }));
  if (json) return printJson(after);
  const code = printOutcomeOf(after);
  if (code === 0) console.log("Everything is as the document says.");
  return code;
}
