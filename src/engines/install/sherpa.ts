// Installs sherpa-onnx on demand: its npm package by the user's own npm, the language data of espeak-ng from the system or from
// Debian's package. No part of our own package: the data and what reads it are GPL.
import { existsSync } from "node:fs";
import { cp, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { GatewayError, toGatewayError } from "../../core/errors.ts";
import { isJsonObject, parseJson } from "../../core/json.ts";
import { createPrivateApt } from "./apt.ts";
import type { InstallProgress } from "./build.ts";
import { putInPlace, withStaging } from "./folder.ts";
import { findOnPath } from "./locate.ts";
import { type RunOptions, runTool } from "./run.ts";

export interface SherpaInstallation {
  readonly version: string;
  /** Absolute; `node_modules` is in it. */
  readonly packageDir: string;
  /** Absolute path of an `espeak-ng-data` folder. */
  readonly dataDir: string;
}

/** The one that this was tried with. */
const wantedVersion = "1.13.8";
const packageName = "sherpa-onnx-node";
const dataName = "espeak-ng-data";
/** What makes a folder of this name one with data in it. */
const dataProof = "phontab";
const systemPrefixes = ["/usr", "/usr/local", "/opt/homebrew", "/opt/local"];

const loading = `try { require("${packageName}") } catch (error) { console.error(error.message); process.exit(1) }`;

/** The installation in the engines folder, or null. Never throws. */
export async function locateSherpa(enginesDir: string): Promise<SherpaInstallation | null> {
  const names = (await readdir(enginesDir).catch(() => [])).filter((name) => /^sherpa-\d/.test(name)).toSorted();
  const found = await Promise.all(names.map((name) => installationIn(path.resolve(enginesDir, name))));
  return found.findLast((installation) => installation !== null) ?? null;
}

/** It has no paths in it: wherever the folder was moved, copied or linked to, it works. */
async function installationIn(packageDir: string): Promise<SherpaInstallation | null> {
  const manifest = path.join(packageDir, "node_modules", packageName, "package.json");
  const parsed = parseJson(await readFile(manifest, "utf8").catch(() => ""));
  const version = isJsonObject(parsed) ? parsed["version"] : null;
  const dataDir = path.join(packageDir, dataName);
  return typeof version === "string" && existsSync(path.join(dataDir, dataProof))
    ? { version, packageDir, dataDir }
    : null;
}

/** Throws `engine_missing` without npm or the language data, `engine_failed` with a tool's last output, `cancelled`. */
export async function installSherpa(options: {
  readonly enginesDir: string;
  /** PATH, HOME and proxies for the tools; npm reads its configuration from HOME. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
  /** Where the system may have the language data: `PREFIX/share`, `PREFIX/lib/TRIPLET`; the usual places when left out. */
  readonly prefixes?: readonly string[];
  onProgress(progress: InstallProgress): void;
}): Promise<SherpaInstallation> {
  const installed = await locateSherpa(options.enginesDir);
  if (installed?.version === wantedVersion) return installed;
  const npm = await findOnPath("npm", options.environment["PATH"] ?? "");
  if (npm === null) throw new GatewayError("engine_missing", "npm is not in PATH, and the package comes by npm");
  const say = (phase: InstallProgress["phase"], detail: string): void =>
    options.onProgress({ phase, done: 0, total: 0, detail });
  return withStaging(options.enginesDir, "sherpa", async (staging, root) => {
    const home = path.join(root, `sherpa-${wantedVersion}`);
    const done = await installationIn(home);
    if (done?.version === wantedVersion) return done;
    const filled = path.join(staging, "package");
    const run: RunOptions = { environment: options.environment, signal: options.signal, cwd: filled };
    await mkdir(filled);
    say("download", `${packageName} ${wantedVersion} by npm`);
    await writeFile(path.join(filled, "package.json"), '{ "private": true }\n');
    // It has no install scripts and shall get none.
    const flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"];
    await runTool(npm, ["install", ...flags, `${packageName}@${wantedVersion}`], run);
    const data = await systemData(options.prefixes ?? systemPrefixes);
    if (data === null) say("download", `Debian's ${dataName}`);
    await cp(data ?? (await debianData(staging, run)), path.join(filled, dataName), {
      recursive: true,
      dereference: true,
    });
    if ((await installationIn(filled))?.version !== wantedVersion)
      throw new GatewayError("engine_failed", `npm has not installed ${packageName} ${wantedVersion}`);
    say("check", "loading it");
    // The platform's own part is an optional dependency: npm succeeds without it.
    await runTool(process.execPath, ["-e", loading], { ...run, timeoutMs: 30_000 });
    await putInPlace(filled, home);
    return { version: wantedVersion, packageDir: home, dataDir: path.join(home, dataName) };
  });
}

/** The language data below one of the prefixes: in `share`, or in `lib/TRIPLET` as Debian has it. */
async function systemData(prefixes: readonly string[]): Promise<string | null> {
  for (const prefix of prefixes) {
    const libraries = await readdir(path.join(prefix, "lib")).catch(() => []);
    const folders = ["share", ...libraries.map((name) => path.join("lib", name))];
    const found = folders.find((folder) => existsSync(path.join(prefix, folder, dataName, dataProof)));
    if (found !== undefined) return path.join(prefix, found, dataName);
  }
  return null;
}

async function debianData(staging: string, run: RunOptions): Promise<string> {
  try {
    const apt = await createPrivateApt(path.join(staging, "apt"), run);
    const debs = await apt.download([dataName], () => undefined);
    const deb = debs.find((file) => path.basename(file).startsWith(`${dataName}_`)) ?? "";
    const unpacked = path.join(staging, "unpacked");
    await runTool("dpkg-deb", ["-x", deb, unpacked], run);
    const data = await systemData([path.join(unpacked, "usr")]);
    if (data !== null) return data;
    throw new GatewayError("engine_failed", `Debian's ${dataName} has no such folder in it`);
  } catch (error) {
    const failure = toGatewayError(error);
    if (failure.code === "cancelled") throw failure;
    const message = `the language data of espeak-ng is not on this system, and could not be fetched: ${failure.message}. Install espeak-ng with the system's package tool, then repeat`;
    throw new GatewayError("engine_missing", message, { cause: error });
  }
}
