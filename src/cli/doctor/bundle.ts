// The support archive: what the checks found, status, document, preset and logs as text, with secrets struck out.
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { engineLogFiles } from "../../app/logs.ts";
import type { Json } from "../../core/json.ts";
import { redacted, redactText, redactValue } from "../../core/redact.ts";
import { runTool } from "../../engines/install/run.ts";
import { isSecretName } from "../../engines/process/engine-environment.ts";
import { createEngineLogs, logText } from "../../engines/process/engine-logs.ts";
import type { Settings } from "../../settings/settings.ts";
import { withGateway } from "../connect.ts";
import { writeNew } from "../new-file.ts";
import type { Check } from "./check.ts";

/** Of each engine. */
const logLines = 2_000;

/** Returns its path. Errors: `invalid_request` where it cannot be written. */
export async function writeBundle(settings: Settings, checks: readonly Check[]): Promise<string> {
  const name = `model-gateway-support-${new Date().toISOString().slice(0, 19).replaceAll(":", "")}`;
  const path = resolve(`${name}.tar.gz`);
  // It is the owner's alone from its first byte on.
  await writeNew(path, "", 0o600);
  const folder = await mkdtemp(join(tmpdir(), "model-gateway-"));
  try {
    await mkdir(join(folder, name));
    const strike = striker(settings);
    for (const [file, text] of Object.entries(await contents(settings, checks)))
      await writeFile(join(folder, name, file), strike(text));
    const { environment } = settings;
    await runTool("tar", ["-czf", path, "-C", folder, name], { environment, signal: new AbortController().signal });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return path;
}

async function contents(settings: Settings, checks: readonly Check[]): Promise<Record<string, string>> {
  const {
    stateDir,
    configPath,
    environment: _,
    licenseKey: __,
    hubToken: ___,
    hubMirrorKey: ____,
    ...shown
  } = settings;
  const textOf = (path: string): Promise<string> => readFile(path, "utf8").catch((error: unknown) => String(error));
  const logs = createEngineLogs({ files: engineLogFiles(settings), now: Date.now, warn: () => undefined });
  const names = await logs.names();
  const kept = await Promise.all(
    names.map(async (name) => [
      `log-${name.replaceAll(/[/:]/g, "-")}.txt`,
      logText(await logs.read(name, logLines), logLines, false),
    ]),
  );
  return {
    "doctor.json": asJson(checks),
    "settings.json": asJson({ stateDir, configPath, ...shown }),
    "gateway.yaml": await textOf(configPath),
    "router.preset.ini": await textOf(join(stateDir, "router.preset.ini")),
    "process.json": asJson({ ...process.versions, platform: process.platform, arch: process.arch }),
    ...(await answers(settings)),
    ...(Object.fromEntries(kept) as Record<string, string>),
  };
}

/** What only the running gateway has; why, where it does not answer. */
async function answers(settings: Settings): Promise<Record<string, string>> {
  try {
    return await withGateway({ settings }, async (client) => ({
      "status.json": asJson(await client.status()),
      "plan.json": asJson(await client.plan({ offline: true })),
      "history.json": asJson(await client.history.list()),
      "metrics.txt": await client.metrics(),
    }));
  } catch (error) {
    return { "gateway.txt": String(error) };
  }
}

function asJson(value: object): string {
  return JSON.stringify(redactValue(JSON.parse(JSON.stringify(value)) as Json, ""), null, 2);
}

/** A value that short occurs in other words too. */
const leastLength = 6;

/** Strikes out what looks like a secret, and each value of a secret that this process was given. */
function striker({ environment, licenseKey, hubToken, hubMirrorKey }: Settings): (text: string) => string {
  const named = Object.entries(environment).flatMap(([name, value]) => (isSecretName(name) && value ? [value] : []));
  const given = [licenseKey, hubToken, hubMirrorKey, ...named];
  const secrets = given.filter((each) => each !== undefined && each.length >= leastLength);
  const inYaml = /^(\s*[\w.-]*(?:key|token|secret|password|passwd|credential)\s*[:=]\s*)\S.*$/gim;
  return (text) =>
    secrets.reduce<string>(
      (left, secret) => left.replaceAll(secret as string, redacted),
      redactText(text).replace(inYaml, `$1${redacted}`),
    );
}
