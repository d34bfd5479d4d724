// `rpc`, `rpc mode`, `rpc add`, `rpc remove`: one model on several machines.
import type { GatewayClient, RpcRoster } from "../client/index.ts";
import { GatewayError } from "../core/errors.ts";
import type { CommandLine } from "../settings/settings.ts";
import { withGateway } from "./connect.ts";
import { bytesText, printJson, printTable } from "./text.ts";

export async function rpcCommand({ settings, json }: CommandLine): Promise<number> {
  const { rpc } = await withGateway({ settings }, (client) => client.status());
  if (json) return printJson(rpc);
  console.log(`RPC mode: ${rpc.mode}`);
  if (!("workers" in rpc))
    throw new GatewayError("unauthorized", "workers need a license key: set GATEWAY_LICENSE_KEY");
  const rows = rpc.workers.map(({ address, latencyMs, devices, conditions }) => [
    address,
    conditions.map(({ reason }) => reason).join(", "),
    latencyMs === null ? "–" : `${latencyMs.toFixed(1)} ms`,
    devices?.map(({ freeBytes, totalBytes }) => `${bytesText(freeBytes)} of ${bytesText(totalBytes)}`).join(", ") ??
      "–",
  ]);
  if (rows.length > 0) printTable([["WORKER", "STATE", "LATENCY", "FREE MEMORY"], ...rows]);
  else console.log(`No workers: \`${settings.command("rpc", "add", "HOST:PORT")}\` adds one.`);
  return 0;
}

export function rpcModeCommand(line: CommandLine): Promise<number> {
  const [mode = ""] = line.operands;
  if (mode !== "single" && mode !== "rpc")
    throw new GatewayError("invalid_request", `the mode is single or rpc, not ${JSON.stringify(mode)}`);
  return change(line, (client) => client.rpc.setMode(mode));
}

export function rpcAddCommand(line: CommandLine): Promise<number> {
  return change(line, (client) => client.rpc.addWorkers(line.operands));
}

export function rpcRemoveCommand(line: CommandLine): Promise<number> {
  return change(line, (client) => client.rpc.removeWorkers(line.operands));
}

async function change(
  { settings, force }: CommandLine,
  work: (client: GatewayClient) => Promise<RpcRoster>,
): Promise<number> {
  const { mode, workers, notInUse } = await withGateway({ settings, change: { force } }, work);
  console.log(`RPC mode: ${mode}; workers: ${workers.join(", ") || "none"}`);
  for (const { address, reason, message } of notInUse) console.log(`! ${address} is not in use: ${reason}: ${message}`);
  return 0;
}
