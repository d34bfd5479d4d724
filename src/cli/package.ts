// `package KIND`: prints a service file of this very set-up: the settings of this command line and its environment.
import { readFile } from "node:fs/promises";
import { userInfo } from "node:os";
import { join, resolve } from "node:path";
import { GatewayError } from "../core/errors.ts";
import { composeFile } from "../packaging/compose.ts";
import { kubernetesManifests } from "../packaging/kubernetes.ts";
import { launchdAgent } from "../packaging/launchd.ts";
import { isWithin, type Setup } from "../packaging/setup.ts";
import { systemdUnit } from "../packaging/systemd.ts";
import { type CommandLine, packageRoot, type Settings, settingRows, version } from "../settings/settings.ts";
import { modelCacheDir } from "../settings/shared.ts";
import { readBytesIfPresent } from "../state/atomic-file.ts";

/** A setting's text, of the command line or the environment. */
type Given = (flag: string) => string | undefined;

const kinds: Readonly<Record<string, (setup: Setup, settings: Settings, given: Given) => string | Promise<string>>> = {
  systemd: (setup, settings, given) => {
    const own = { stateDir: "/var/lib/model-gateway", cacheDir: "/var/lib/model-gateway/hub" };
    return systemdUnit(withoutRoot(setup, settings, given, own));
  },
  compose: (setup, settings, given) =>
    composeFile(withoutRoot(setup, settings, given, { stateDir: "state", cacheDir: "models" })),
  k8s: async (setup, settings) => kubernetesManifests(setup, await documentText(settings)),
  launchd: (setup) => launchdAgent(setup),
};

/** Errors: `invalid_request` for an unknown kind, and for a set-up that such a service cannot have. */
export async function packageCommand({ operands, settings, given: flagOf }: CommandLine): Promise<number> {
  const [kind = ""] = operands;
  const make = Object.hasOwn(kinds, kind) ? kinds[kind] : undefined;
  if (!make) throw refused(`there is no package ${kind}: choose ${Object.keys(kinds).join(", ")}`);
  const variables = new Map(settingRows.map(({ flag, variable }) => [flag, settings.environment[variable]]));
  const given: Given = (flag) => flagOf(flag) ?? (variables.get(flag) || undefined);
  process.stdout.write(await make(await setupOf(settings, given), settings, given));
  for (const name of secretsIn(settings.environment))
    note(`${name} has a secret and is left out; --license-key-file and --hub-token-file name files`);
  return 0;
}

/** Members of the set-up have these, or a service decides. */
const own = new Set(["host", "port", "state", "config", "license-key-file", "hub-token-file", "log"]);
/** Files of this machine. */
const programs = new Set(["llama-server", "whisper-server", "piper", "rpc-server", "hub-mirror-key-file"]);
/** Those that have no flag. */
const shared = ["GATEWAY_ENGINE_SOURCE", "HF_ENDPOINT", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"];
/** As `npm start` has it. */
const nodeFlags = ["--max-semi-space-size=4", "--v8-pool-size=1"];

async function setupOf(settings: Settings, given: Given): Promise<Setup> {
  const { environment, licenseKeyFile, hubTokenPath } = settings;
  const { host, port, stateDir, cacheDir, configPath, writesBack, stopGraceMs, stopDelayMs } = settings;
  const { username, uid, gid } = userInfo();
  const set = settingRows.flatMap(({ flag }) => {
    const value = given(flag);
    return value === undefined || own.has(flag) ? [] : { flag, value };
  });
  const secret = secretsIn(environment);
  return {
    version,
    program: [process.execPath, ...nodeFlags, join(packageRoot, "dist", "program", "cli.js")],
    account: { name: username, uid, gid },
    gpuGroups: await gpuGroups(),
    host,
    port,
    stateDir,
    cacheDir,
    configPath,
    writesBack,
    stopGraceMs,
    stopDelayMs,
    licenseKeyFile: licenseKeyFile === undefined ? null : resolve(licenseKeyFile),
    hubTokenFile: hubTokenPath,
    flags: set.flatMap(({ flag, value }) => (programs.has(flag) ? [] : `--${flag}=${value}`)),
    engineFlags: set.flatMap(({ flag, value }) => (programs.has(flag) ? `--${flag}=${resolve(value)}` : [])),
    variables: Object.fromEntries(
      shared.flatMap((name) => (environment[name] && !secret.includes(name) ? [[name, environment[name]]] : [])),
    ),
  };
}

/** A proxy's address may have a password. */
function secretsIn(environment: Settings["environment"]): string[] {
  const addresses = shared.filter((name) => environment[name]?.includes("@"));
  return [...addresses, ...["HF_TOKEN", "GATEWAY_LICENSE_KEY"].filter((name) => environment[name])];
}

async function gpuGroups(): Promise<string[]> {
  const groups = await readFile("/etc/group", "utf8").catch(() => "");
  return ["video", "render"].filter((name) => new RegExp(`^${name}:`, "m").test(groups));
}

/** Nothing runs as root: its service has an account and folders of its own. Errors: `invalid_request` for folders of this machine. */
function withoutRoot(
  setup: Setup,
  { environment }: Settings,
  given: Given,
  standard: Pick<Setup, "stateDir" | "cacheDir">,
): Setup {
  if (setup.account?.uid !== 0) return setup;
  const isStandard = modelCacheDir({ HOME: environment["HOME"] }) === setup.cacheDir;
  for (const [path, isGiven] of [
    [setup.stateDir, given("state") !== undefined],
    [setup.cacheDir, !isStandard],
  ] as const)
    if (isGiven && !isWithin(standard.stateDir, path))
      throw refused(
        `a service does not run as root: run this as the account that shall write to ${path}, with sudo -u`,
      );
  const configPath = given("config") === undefined ? `${standard.stateDir}/gateway.yaml` : setup.configPath;
  return { ...setup, ...standard, configPath, account: null };
}

/** Errors: `invalid_request` for a document that is not valid. */
async function documentText({ configPath, presetAllow }: Settings): Promise<string> {
  const bytes = await readBytesIfPresent(configPath);
  if (bytes === null) return "version: 1\nmodels: []\n";
  const [{ parseBytes }, { toDesired }, { namedFiles }] = await Promise.all([
    import("../desired/document/parse.ts"),
    import("../desired/document/document.ts"),
    import("../plan/model-files.ts"),
  ]);
  const parsed = parseBytes(bytes, presetAllow);
  if (!parsed.ok) throw refused(`${configPath} is not valid: ${parsed.problems[0]?.message}`);
  const files = toDesired(parsed.tree).models.flatMap((model) => [model.source ?? [], namedFiles(model)].flat());
  if (files.length > 0) note(`the document names files, which the ConfigMap does not have: ${files.join(", ")}`);
  return bytes.toString("utf8");
}

function refused(message: string): GatewayError {
  return new GatewayError("invalid_request", message);
}

function note(text: string): void {
  console.error(`Note: ${text}`);
}
