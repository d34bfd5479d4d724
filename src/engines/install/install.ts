// Owns installing an engine into the state folder: which way, in which order, and that it becomes visible whole or not at all.
// The ways themselves are release.ts and debian.ts; finding an engine is locate.ts.

import { rename } from "node:fs/promises";
import path from "node:path";
import { GatewayError, toGatewayError } from "../../core/errors.ts";
import type { Build, InstallProgress } from "./build.ts";
import { commandByHand, type EngineName, engineFacts } from "./catalog.ts";
import { resolveDebian } from "./debian.ts";
import {
  activate,
  createStaging,
  homeOf,
  type InstalledEngine,
  prepareEnginesDir,
  readInstallation,
  removeOldVersions,
  type Staging,
} from "./folder.ts";
import { findOnPath, installedBinary } from "./locate.ts";
import { resolveRelease } from "./release.ts";
import { type RunOptions, runTool } from "./run.ts";

export type { InstallProgress } from "./build.ts";
export type { EngineName } from "./catalog.ts";

export interface InstallOptions {
  readonly enginesDir: string;
  /** PATH and proxies for the tools; `GATEWAY_ENGINE_SOURCE` = `debian` or `release` forces one way. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The releases API; the official one of the engine's project when left out. */
  readonly releaseUrl?: string;
  readonly signal: AbortSignal;
  onProgress(progress: InstallProgress): void;
}

export interface Installation {
  readonly version: string;
  readonly how: "debian" | "release";
  /** Absolute path of the engine's folder. */
  readonly dir: string;
}

type Way = Installation["how"];

/**
 * Installs the engine, or finds that this version is installed already.
 * Throws `engine_missing` when no way leads to one here, `engine_failed` when a way broke off,
 * `checksum_mismatch`, `disk_full`, `cancelled`.
 */
export async function installEngine(name: EngineName, options: InstallOptions): Promise<Installation> {
  const enginesDir = await prepareEnginesDir(options.enginesDir);
  const ways = await chooseWays(options.environment);
  const reasons: GatewayError[] = [];
  for (const way of ways) {
    try {
      return await installOneWay(name, way, enginesDir, options);
    } catch (error) {
      const failure = toGatewayError(error);
      // A way that is impossible is left to the next; a wrong digest, a full disk or a cancellation are final.
      if (failure.code !== "engine_missing" && failure.code !== "engine_failed") throw failure;
      reasons.push(failure);
      if (way !== ways.at(-1)) options.onProgress({ phase: "resolve", done: 0, total: 0, detail: failure.message });
    }
  }
  const worst = reasons.find((reason) => reason.code === "engine_failed") ?? reasons.at(-1);
  const said = reasons.map((reason) => reason.message).join("; ");
  const message = `${name} could not be installed: ${said}. By hand: ${commandByHand(name, process.platform)}`;
  throw new GatewayError(worst?.code ?? "engine_missing", message, { cause: worst });
}

/** The official release first; Debian's packages where the release cannot be had and the system can unpack them. */
async function chooseWays(environment: InstallOptions["environment"]): Promise<readonly Way[]> {
  const forced = environment["GATEWAY_ENGINE_SOURCE"];
  const pathVariable = environment["PATH"] ?? "";
  const tools = ["apt-get", "dpkg-deb"];
  const found = await Promise.all(tools.map((tool) => findOnPath(tool, pathVariable)));
  const debianKin = process.platform === "linux" && found.every((tool) => tool !== null);
  if (forced === undefined || forced === "") return debianKin ? ["release", "debian"] : ["release"];
  if (forced === "release") return ["release"];
  if (forced !== "debian") {
    throw new GatewayError("invalid_request", `GATEWAY_ENGINE_SOURCE is "${forced}"; it can be debian or release`);
  }
  if (!debianKin) throw new GatewayError("engine_missing", "the Debian way needs apt-get and dpkg-deb on Linux");
  return ["debian"];
}

async function installOneWay(
  name: EngineName,
  way: Way,
  enginesDir: string,
  options: InstallOptions,
): Promise<Installation> {
  const staging = await createStaging(enginesDir, name);
  const run: RunOptions = { environment: options.environment, signal: options.signal };
  try {
    const context = { staging: staging.dir, run, onProgress: (p: InstallProgress) => options.onProgress(p) };
    const build: Build =
      way === "debian"
        ? await resolveDebian(name, context)
        : await resolveRelease(name, { ...context, url: options.releaseUrl });
    const home = homeOf(enginesDir, name, build.version, build.detail);
    const installation = { version: build.version, how: way, dir: home };
    if (await isComplete(home, name)) {
      options.onProgress({
        phase: "check",
        done: 1,
        total: 1,
        detail: `${name} ${build.version} is installed already`,
      });
      return installation;
    }
    const { folder, binaries } = await build.fill(home);
    const manifest = { name, version: build.version, how: way, home, binaries, installedAt: new Date().toISOString() };
    const placed = await activate(staging, folder, manifest, (dir) => isComplete(dir, name));
    if (placed === "placed") await prove({ dir: home, manifest }, name, run, staging);
    await removeOldVersions(enginesDir, name);
    options.onProgress({
      phase: "check",
      done: 1,
      total: 1,
      detail: `${name} ${build.version} is installed in ${home}`,
    });
    return installation;
  } finally {
    await staging.discard();
  }
}

async function isComplete(dir: string, name: EngineName): Promise<boolean> {
  const engine = await readInstallation(dir);
  return engine !== null && (await installedBinary(engine, engineFacts[name].main)) !== null;
}

/**
 * Starts the engine from its final place; what does not run there (a folder mounted noexec) is removed. After a cancelled check it
 * stays: it is complete, and another process may use it already.
 */
async function prove(engine: InstalledEngine, name: EngineName, run: RunOptions, staging: Staging): Promise<void> {
  const { main, proof } = engineFacts[name];
  try {
    await runTool(path.join(engine.dir, engine.manifest.binaries[main] ?? ""), proof, { ...run, timeoutMs: 30_000 });
  } catch (error) {
    if (toGatewayError(error).code !== "cancelled") await rename(engine.dir, path.join(staging.dir, "unproven"));
    throw error;
  }
}
