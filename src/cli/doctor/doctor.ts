// `doctor`: checks this machine and the running gateway; `--bundle` writes what a person who helps needs to see.
import { machineMemory } from "../../engines/process/memory.ts";
import { type CommandLine, type Settings, version } from "../../settings/settings.ts";
import { paintFor } from "../colors.ts";
import { GatewayAway, withGateway } from "../connect.ts";
import { printJson } from "../text.ts";
import { type Check, checkLines, failed } from "./check.ts";
import { type GatewayFacts, gatewayChecks } from "./gateway-checks.ts";
import { type LocalFacts, localChecks } from "./local-checks.ts";
import { localFacts } from "./local-facts.ts";

/** Exit code 1: a check failed. */
export async function doctorCommand({ settings, flags, json }: CommandLine): Promise<number> {
  const isFirst = flags.includes("pre");
  const [gateway, largest] = isFirst
    ? [null, null]
    : await Promise.all([gatewayFacts(settings), largestModel(settings)]);
  const status = gateway && "status" in gateway && "conditions" in gateway.status ? gateway.status : null;
  const local = await localFacts(settings, { isFirst, largest, status });
  const own = gateway === null ? [] : "status" in gateway ? gatewayChecks(gateway) : [gateway];
  const checks = [...localChecks(local), ...own];
  const isWrong = checks.some(({ result }) => result === "failed");
  if (json) printJson({ ok: !isWrong, checks });
  else {
    const { stdout } = process;
    for (const line of checkLines(checks, paintFor(stdout), stdout.isTTY ? stdout.columns : undefined))
      console.log(line);
  }
  if (flags.includes("bundle")) {
    const path = await (await import("./bundle.ts")).writeBundle(settings, checks);
    console.error(`${path} is the support archive: look into it before you send it.`);
  }
  return isWrong ? 1 : 0;
}

/** A check that has failed where none runs. */
async function gatewayFacts(settings: Settings): Promise<GatewayFacts | Check> {
  try {
    return await withGateway({ settings }, async (client) => {
      const status = await client.status();
      const metrics = "conditions" in status ? await client.metrics() : null;
      return { status, metrics, ownVersion: version, memory: machineMemory(), now: Date.now() };
    });
  } catch (error) {
    if (!(error instanceof GatewayAway)) throw error;
    const remedy = `Start it: \`${settings.command("serve")}\`. Before the first start use --pre.`;
    return failed("gateway-runs", error.message, remedy);
  }
}

/** Of the document, as far as it is here; null where that cannot be read, which other checks tell. */
async function largestModel(settings: Settings): Promise<LocalFacts["largest"]> {
  const without = async () => (await import("../offline.ts")).offlineReport(settings);
  const report = await withGateway({ settings, without }, (client) => client.disk.report()).catch(() => null);
  const models = (report?.models ?? []).filter(({ desired, present }) => desired && present);
  return models.toSorted((a, b) => b.bytes - a.bytes)[0] ?? null;
}
