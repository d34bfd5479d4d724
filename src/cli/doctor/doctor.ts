// `doctor`: checks this machine and the running gateway; `--bundle` writes what a person who helps needs to see.
import { machineMemory } from "../../engines/process/memory.ts";
import { type CommandLine, type Settings, version } from "../../settings/settings.ts";
import { paintFor } from "../colors.ts";
import { GatewayAway, withGateway } from "../connect.ts";
import { printJson } from "../text.ts";
import { writeBundle } from "./bundle.ts";
import { type Check, checkLines, failed } from "./check.ts";
import { gatewayChecks } from "./gateway-checks.ts";
import { type LocalFacts, localChecks } from "./local-checks.ts";
import { localFacts } from "./local-facts.ts";

/** Exit code 1: a check failed. */
export async function doctorCommand({ settings, flags, json }: CommandLine): Promise<number> {
  const isFirst = flags.includes("pre");
  const checks = [
    ...localChecks(await localFacts(settings, isFirst ? null : await largestModel(settings), isFirst)),
    ...(isFirst ? [] : await checksOfGateway(settings)),
  ];
  const isWrong = checks.some(({ result }) => result === "failed");
  if (json) printJson({ ok: !isWrong, checks });
  else {
    const { stdout } = process;
    for (const line of checkLines(checks, paintFor(stdout), stdout.isTTY ? stdout.columns : undefined))
      console.log(line);
  }
  if (flags.includes("bundle"))
    console.error(`${await writeBundle(settings, checks)} is the support archive: look into it before you send it.`);
  return isWrong ? 1 : 0;
}

async function checksOfGateway(settings: Settings): Promise<Check[]> {
  try {
    return await withGateway({ settings }, async (client) => {
      const status = await client.status();
      const metrics = "conditions" in status ? await client.metrics() : null;
      return gatewayChecks({ status, metrics, ownVersion: version, memory: machineMemory(), now: Date.now() });
    });
  } catch (error) {
    if (!(error instanceof GatewayAway)) throw error;
    return [
      failed(
        "gateway-runs",
        error.message,
        `Start it: \`${settings.command("serve")}\`. Before the first start use --pre.`,
      ),
    ];
  }
}

/** Of the document, as far as it is here; null where that cannot be read, which other checks tell. */
async function largestModel(settings: Settings): Promise<LocalFacts["largest"]> {
  const without = async () => (await import("../offline.ts")).offlineReport(settings);
  const report = await withGateway({ settings, without }, (client) => client.disk.report()).catch(() => null);
  const models = (report?.models ?? []).filter(({ desired, present }) => desired && present);
  return models.toSorted((a, b) => b.bytes - a.bytes)[0] ?? null;
}
