// Owns the release way: the official archive for this platform from the project's releases, checked by its digest.
// Gives a filled folder; naming it and making it visible is the front door's work.

import { rm } from "node:fs/promises";
import path from "node:path";
import { EnvHttpProxyAgent, fetch } from "undici";
import { GatewayError } from "../../core/errors.ts";
import { fetchAsset, findProgram, reasonOf, unpackArchive } from "./archive.ts";
import type { Build, BuildContext } from "./build.ts";
import { type EngineBinary, type EngineName, engineFacts } from "./catalog.ts";
import { chooseAsset } from "./release-asset.ts";
import { type RunOptions, runTool, throwIfCancelled } from "./run.ts";

interface ReleaseOptions extends BuildContext {
  readonly url: string | undefined;
}

/** A machine without internet access should fail fast and try the other way. */
const connectMs = 4000;
const listingMs = 10_000;

/** Asks the listing. Throws `engine_missing` when it cannot be reached or has nothing for this platform. */
export async function resolveRelease(name: EngineName, options: ReleaseOptions): Promise<Build> {
  const facts = engineFacts[name];
  const { staging, run, onProgress } = options;
  const url = options.url ?? facts.releases;
  onProgress({ phase: "resolve", done: 0, total: 0, detail: `asking ${new URL(url).host} for releases` });
  const dispatcher = createDispatcher(run.environment);
  const asset = chooseAsset(await fetchListing(url, dispatcher, run.signal), process.platform, process.arch);
  if (typeof asset === "string") {
    throw new GatewayError("engine_missing", `the ${name} release way is not available for this platform: ${asset}`);
  }
  const chosen = `official release ${asset.tag}: ${asset.name}`;
  onProgress({ phase: "resolve", done: 1, total: 1, detail: chosen });

  return {
    version: asset.tag,
    detail: "release",
    async fill() {
      const file = path.join(staging, path.basename(asset.name));
      await fetchAsset(asset, file, {
        dispatcher,
        signal: run.signal,
        onBytes: (done) => onProgress({ phase: "download", done, total: asset.size, detail: chosen }),
      });
      onProgress({ phase: "unpack", done: 0, total: 1, detail: asset.name });
      const folder = path.join(staging, "prefix");
      await unpackArchive(file, folder, run);
      await rm(file);
      onProgress({ phase: "unpack", done: 1, total: 1, detail: asset.name });
      const binaries: Partial<Record<EngineBinary, string>> = {};
      for (const [binary, names] of Object.entries(facts.binaries)) {
        const program = await findProgram(folder, names);
        if (program !== null) binaries[binary as EngineBinary] = program;
      }
      const main = binaries[facts.main];
      if (main === undefined) throw new GatewayError("engine_failed", `${asset.name} holds no ${facts.main}`);
      await proveHere(path.join(folder, main), facts.proof, asset.name, run);
      return { folder, binaries };
    },
  };
}

/** An archive that does not run here (musl, an older glibc) is the same as none: `engine_missing`. */
async function proveHere(program: string, args: readonly string[], archive: string, run: RunOptions): Promise<void> {
  try {
    await runTool(program, args, { ...run, timeoutMs: 30_000 });
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code === "cancelled") throw error;
    throw new GatewayError("engine_missing", `${archive} does not run on this system: ${error.message}`, {
      cause: error,
    });
  }
}

async function fetchListing(url: string, dispatcher: EnvHttpProxyAgent, signal: AbortSignal): Promise<unknown> {
  try {
    const response = await fetch(url, {
      dispatcher,
      headers: { accept: "application/vnd.github+json", "user-agent": "model-gateway" },
      signal: AbortSignal.any([signal, AbortSignal.timeout(listingMs)]),
    });
    if (!response.ok) throw new Error(`it responded ${response.status}`);
    return await response.json();
  } catch (error) {
    throwIfCancelled(signal);
    const host = new URL(url).host;
    throw new GatewayError("engine_missing", `the releases on ${host} cannot be listed: ${reasonOf(error)}`, {
      cause: error,
    });
  }
}

function createDispatcher(environment: Readonly<Record<string, string | undefined>>): EnvHttpProxyAgent {
  // Empty strings, as undici would look into the process environment for what is left out.
  return new EnvHttpProxyAgent({
    httpProxy: environment["http_proxy"] ?? environment["HTTP_PROXY"] ?? "",
    httpsProxy: environment["https_proxy"] ?? environment["HTTPS_PROXY"] ?? "",
    noProxy: environment["no_proxy"] ?? environment["NO_PROXY"] ?? "",
    connect: { timeout: connectMs },
  });
}
