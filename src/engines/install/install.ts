// Installs an engine into the state folder: which way, in which order, visible whole or not at all.
import { rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { GatewayError, toGatewayError } from "../../core/errors.ts";
import type { BuildContext, InstallProgress } from "./build.ts";
import { type EngineName, engineFacts } from "./catalog.ts";
import { resolveDebian } from "./debian.ts";
import {
  type EngineManifest,
  manifestName,
  putInPlace,
  readInstallation,
  removeOldVersions,
  withStaging,
} from "./folder.ts";
import { findOnPath, installedBinary } from "./locate.ts";
import { resolveRelease } from "./release.ts";
import { type RunOptions, runTool } from "./run.ts";

export interface InstallOptions {
  readonly enginesDir: string;
  /** PATH and proxies for the tools; `GATEWAY_ENGINE_SOURCE` = `debian` or `release` forces one way. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The releases API; default the official one of the engine's project. */
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

/** Throws `engine_missing` where no way leads to one, `engine_failed`, `checksum_mismatch`, `disk_full`, `cancelled`. */
export async function installEngine(name: EngineName, options: InstallOptions): Promise<Installation> {
  const reasons: GatewayError[] = [];
  for (const way of await chooseWays(options.environment)) {
    try {
      return await installOneWay(name, way, options);
    } catch (error) {
      const failure = toGatewayError(error);
      // A wrong digest, a full disk or a cancellation are final; else the next way is tried.
      if (failure.code !== "engine_missing" && failure.code !== "engine_failed") throw failure;
      reasons.push(failure);
      options.onProgress({ phase: "resolve", done: 0, total: 0, detail: failure.message });
    }
  }
  const why = reasons.map((reason) => reason.message).join("; ");
  const { byHand } = engineFacts[name];
  const command = process.platform in byHand ? byHand[process.platform as "darwin" | "win32"] : byHand.other;
  const cause = reasons.find((reason) => reason.code === "engine_failed") ?? reasons.at(-1);
  const message = `${name} could not be installed: ${why}. By hand: ${command}`;
  throw new GatewayError(cause?.code ?? "engine_missing", message, { cause });
}

/** The official release first; Debian's packages where the release cannot be had and the system can unpack them. */
async function chooseWays(environment: InstallOptions["environment"]): Promise<readonly Installation["how"][]> {
  const forced = environment["GATEWAY_ENGINE_SOURCE"] || "any";
  if (!["any", "release", "debian"].includes(forced))
    throw new GatewayError("invalid_request", `GATEWAY_ENGINE_SOURCE is "${forced}"; it can be debian or release`);
  const tools = ["apt-get", "dpkg-deb"].map((tool) => findOnPath(tool, environment["PATH"] ?? ""));
  const hasTools = process.platform === "linux" && (await Promise.all(tools)).every((tool) => tool !== null);
  if (forced === "debian" && !hasTools)
    throw new GatewayError("engine_missing", "the Debian way needs apt-get and dpkg-deb on Linux");
  if (forced === "debian") return ["debian"];
  return forced === "any" && hasTools ? ["release", "debian"] : ["release"];
}

function installOneWay(name: EngineName, how: Installation["how"], options: InstallOptions): Promise<Installation> {
  const { environment, signal } = options;
  const run: RunOptions = { environment, signal };
  const { main, proof } = engineFacts[name];
  const done = (detail: string): void => options.onProgress({ phase: "check", done: 1, total: 1, detail });
  return withStaging(options.enginesDir, name, async (staging, root) => {
    const context: BuildContext = { staging, run, onProgress: (progress) => options.onProgress(progress) };
    const build = await (how === "debian"
      ? resolveDebian(name, context)
      : resolveRelease(name, context, options.releaseUrl));
    const { version } = build;
    const home = path.join(root, `${name}-${version}-${build.detail}`.replaceAll(/[^A-Za-z0-9.+~_-]/g, "_"));
    const installed = await readInstallation(home);
    if (installed && (await installedBinary(installed, main)) !== null) {
      done(`${name} ${version} is installed already`);
      return { version, how, dir: home };
    }
    const { folder, binaries } = await build.fill(home);
    const manifest: EngineManifest = { name, version, how, home, binaries, installedAt: new Date().toISOString() };
    await writeFile(path.join(folder, manifestName), JSON.stringify(manifest, null, 2));
    await putInPlace(folder, home);
    await prove(path.join(home, binaries[main] ?? ""), proof, run).catch(async (error: unknown) => {
      await rm(home, { recursive: true, force: true });
      throw error;
    });
    await removeOldVersions(root, name);
    done(`${name} ${version} is installed in ${home}`);
    return { version, how, dir: home };
  });
}

/** What does not start (musl, an older glibc, a folder mounted noexec) is the same as none: `engine_missing`. */
async function prove(program: string, args: readonly string[], run: RunOptions): Promise<void> {
  try {
    await runTool(program, args, { ...run, timeoutMs: 30_000 });
  } catch (error) {
    const { code, message } = toGatewayError(error);
    if (code === "cancelled") throw error;
    throw new GatewayError("engine_missing", `it does not run on this system: ${message}`, { cause: error });
  }
}
