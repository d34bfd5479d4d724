// `status --all`: gateways that are to be alike, each asked at its own address.
import { Agent } from "node:http";
import { createGatewayClient } from "../client/index.ts";
import { GatewayError, reasonOf } from "../core/errors.ts";
import type { Settings } from "../settings/settings.ts";
import { askWith } from "./plain-fetch.ts";
import { compareReplicas, type Replica, replicaTable, verdictOf } from "./replica-table.ts";
import { printJson, printProblem, printTable } from "./text.ts";

/** ms in which a gateway must have answered: one that hangs must not hold up the table. */
const patienceMs = 10_000;

/** Exit code 0 where all have the same document, else 1. Errors: `invalid_request` for an address that is none. */
export async function replicasCommand(list: string, settings: Settings, json: boolean): Promise<number> {
  const urls = list.split(",").flatMap((entry) => (entry.trim() === "" ? [] : [originOf(entry.trim())]));
  if (urls.length === 0)
    throw new GatewayError("invalid_request", "--all takes the addresses of gateways, separated by commas");
  const agent = new Agent();
  const replicas = await Promise.all(urls.map((url) => ask(url, settings, agent))).finally(() => agent.destroy());
  const comparison = compareReplicas(replicas);
  if (json) printJson(comparison);
  else printTable(replicaTable(comparison));
  const verdict = verdictOf(comparison);
  if (!comparison.same) return printProblem(verdict);
  if (!json) console.log(`\n${verdict}`);
  return 0;
}

/** `HOST:PORT` or `http://HOST:PORT`. */
function originOf(entry: string): string {
  const text = entry.includes("://") ? entry : `http://${entry}`;
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url?.protocol === "http:" && url.pathname === "/" && url.search === "") return url.origin;
  throw new GatewayError(
    "invalid_request",
    `--all takes addresses such as http://10.0.0.11:8484, not ${JSON.stringify(entry)}`,
  );
}

async function ask(url: string, { licenseKey, userAgent }: Settings, agent: Agent): Promise<Replica> {
  const client = createGatewayClient({
    baseUrl: url,
    ...(licenseKey === undefined ? {} : { licenseKey }),
    fetch: askWith(agent, userAgent),
  });
  try {
    return { url, status: await client.status({ signal: AbortSignal.timeout(patienceMs) }) };
  } catch (error) {
    return { url, status: { problem: reasonOf(error) } };
  }
}
