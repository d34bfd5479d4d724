// Owns the folder of installed engines: staging, the manifest that makes an installation visible, leftovers, old versions.
// An installation exists once its folder with a manifest has its final name; everything else there is a leftover.

import { randomBytes } from "node:crypto";
import type { Dirent } from "node:fs";
import { lstat, mkdir, readdir, readFile, realpath, rename, rm } from "node:fs/promises";
import path from "node:path";
import { GatewayError, systemCode } from "../../core/errors.ts";
import { writeAtomic } from "../../state/atomic-file.ts";
import { makeFolder } from "../../state/folder.ts";
import type { EngineBinary, EngineName } from "./catalog.ts";

export interface EngineManifest {
  readonly name: EngineName;
  readonly version: string;
  readonly how: "debian" | "release";
  /** Where it lies: executables of the Debian way carry this path, so a moved folder counts as none until rehome.ts was there. */
  readonly home: string;
  /** Paths relative to the folder. */
  readonly binaries: Readonly<Partial<Record<EngineBinary, string>>>;
  /** ISO 8601. */
  readonly installedAt: string;
}

export interface InstalledEngine {
  readonly dir: string;
  readonly manifest: EngineManifest;
}

export interface Staging {
  /** The folder to fill; removed by `discard`, renamed by `activate`. */
  readonly dir: string;
  discard(): Promise<void>;
}

const manifestName = "engine.json";
const stagingPrefix = ".installing-";
/** Other installations of the same build have ended by then, or what is there cannot be moved. */
const placeAttempts = 5;
/** Stagings of this process: a restarted container has the same pid as the one that was killed in it. */
const own = new Set<string>();

/** All complete installations, the newest first. Never throws: an unreadable folder holds none. */
export async function readInstalled(enginesDir: string): Promise<InstalledEngine[]> {
  const found: InstalledEngine[] = [];
  for (const engine of await readFolders(enginesDir)) if (await isAtHome(engine)) found.push(engine);
  return found.sort((a, b) => b.manifest.installedAt.localeCompare(a.manifest.installedAt));
}

/** The complete installation in this folder, or null. Never throws. */
export async function readInstallation(dir: string): Promise<InstalledEngine | null> {
  const manifest = await readManifest(dir);
  return manifest !== null && (await isAtHome({ dir, manifest })) ? { dir, manifest } : null;
}

/** Those that were moved or copied here, so that they do not run here. Never throws. */
export async function readStrays(enginesDir: string): Promise<InstalledEngine[]> {
  const strays: InstalledEngine[] = [];
  for (const engine of await readFolders(enginesDir)) if (!(await isAtHome(engine))) strays.push(engine);
  return strays;
}

/** Links count: what they lead to may be where it belongs, or be at home everywhere. */
async function readFolders(enginesDir: string): Promise<InstalledEngine[]> {
  const found: InstalledEngine[] = [];
  for (const entry of await entriesOf(enginesDir)) {
    if (entry.name.startsWith(".")) continue;
    const dir = path.resolve(enginesDir, entry.name);
    const manifest = await readManifest(dir);
    if (manifest !== null) found.push({ dir, manifest });
  }
  return found;
}

async function isAtHome({ dir, manifest }: InstalledEngine): Promise<boolean> {
  return manifest.how !== "debian" || manifest.home === (await realpath(dir).catch(() => null));
}

async function readManifest(dir: string): Promise<EngineManifest | null> {
  try {
    const manifest = JSON.parse(await readFile(path.join(dir, manifestName), "utf8")) as EngineManifest;
    if (typeof manifest.installedAt !== "string" || typeof manifest.binaries !== "object") return null;
    return manifest;
  } catch {
    // No manifest, or not ours: an interrupted installation.
    return null;
  }
}

/** Makes the folder where engines live and gives its real path; clears what interrupted installations left there. */
export async function prepareEnginesDir(enginesDir: string): Promise<string> {
  try {
    await makeFolder(enginesDir);
    const real = await realpath(enginesDir);
    for (const entry of await readdir(real, { withFileTypes: true })) {
      if (entry.name.startsWith(stagingPrefix) && !isInUse(entry.name)) {
        await rm(path.join(real, entry.name), { recursive: true, force: true });
      }
    }
    return real;
  } catch (error) {
    throw writeFailure(enginesDir, error);
  }
}

/** A new empty folder beside the final one, on the same filesystem, so that the last step is one rename. */
export async function createStaging(enginesDir: string, name: string): Promise<Staging> {
  const folder = `${stagingPrefix}${name}-${process.pid}-${randomBytes(4).toString("hex")}`;
  const dir = path.join(enginesDir, folder);
  own.add(folder);
  try {
    await mkdir(dir);
  } catch (error) {
    own.delete(folder);
    throw writeFailure(dir, error);
  }
  return {
    dir,
    async discard() {
      await rm(dir, { recursive: true, force: true, maxRetries: 3 });
      own.delete(folder);
    },
  };
}

/** The final folder of a version. `detail` tells builds of the same version apart. */
export function homeOf(enginesDir: string, name: EngineName, version: string, detail: string): string {
  const safe = [name, version, detail].map((part) => part.replaceAll(/[^A-Za-z0-9.+~_-]/g, "_")).join("-");
  return path.join(enginesDir, safe);
}

/** Writes the manifest and gives `filled` its final name, as {@link putInPlace} does. */
export async function activate(
  staging: Staging,
  filled: string,
  manifest: EngineManifest,
  isComplete: (dir: string) => Promise<boolean>,
): Promise<"placed" | "found"> {
  await writeManifest(filled, manifest);
  return putInPlace(staging, filled, manifest.home, isComplete);
}

/** Whole or not at all: an engine without a manifest is none. */
export async function writeManifest(dir: string, manifest: EngineManifest): Promise<void> {
  await writeAtomic(path.join(dir, manifestName), `${JSON.stringify(manifest, null, 2)}\n`).catch((error: unknown) => {
    throw writeFailure(dir, error);
  });
}

/**
 * Gives `filled`, a folder inside the staging, its final name. Where something stands under that name already, it stays if it
 * is complete (`found`), and makes way if it is not.
 */
export async function putInPlace(
  staging: Staging,
  filled: string,
  home: string,
  isComplete: (dir: string) => Promise<boolean>,
): Promise<"placed" | "found"> {
  try {
    for (let attempt = 1; ; attempt++) {
      if (await renamedOnto(filled, home)) return "placed";
      const judged = await inodeOf(home);
      // Another installation of the same build came first, and may be running already: it stays.
      if (await isComplete(home)) return "found";
      if (attempt === placeAttempts) throw new GatewayError("engine_failed", `${home} is in the way: delete it`);
      const aside = path.join(staging.dir, `replaced-${attempt}`);
      await rename(home, aside).catch((error: unknown) => {
        if (systemCode(error) !== "ENOENT") throw error;
      });
      // Another one, which came within this moment, goes back at once.
      if ((await inodeOf(aside)) !== judged) await renamedOnto(aside, home);
    }
  } catch (error) {
    throw writeFailure(home, error);
  }
}

async function inodeOf(entry: string): Promise<number | null> {
  return (await lstat(entry).catch(() => null))?.ino ?? null;
}

/** False when something stands there, a link too: renaming a folder replaces none but an empty one. */
async function renamedOnto(from: string, to: string): Promise<boolean> {
  try {
    await rename(from, to);
    return true;
  } catch (error) {
    const code = systemCode(error);
    // Windows says EPERM for it.
    if (
      code === "ENOTEMPTY" ||
      code === "EEXIST" ||
      code === "ENOTDIR" ||
      (code === "EPERM" && process.platform === "win32")
    )
      return false;
    throw error;
  }
}

/** Deletes versions of an engine but for the newest two: a running engine may have been started from the second. */
export async function removeOldVersions(enginesDir: string, name: EngineName): Promise<void> {
  const installed = (await readInstalled(enginesDir)).filter((engine) => engine.manifest.name === name);
  for (const engine of installed.slice(2)) await rm(engine.dir, { recursive: true, force: true });
}

function isInUse(folder: string): boolean {
  const pid = Number(/-(\d+)-[0-9a-f]+$/.exec(folder)?.[1]);
  if (!Number.isInteger(pid)) return false;
  if (pid === process.pid) return own.has(folder);
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return systemCode(error) === "EPERM";
  }
}

async function entriesOf(dir: string): Promise<Dirent[]> {
  try {
    return await readdir(dir, { withFileTypes: true });
  } catch {
    return [];
  }
}

function writeFailure(where: string, error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  const code = systemCode(error);
  const message = error instanceof Error ? error.message : String(error);
  return new GatewayError(code === "ENOSPC" ? "disk_full" : "engine_failed", `cannot write ${where}: ${message}`, {
    cause: error,
  });
}
