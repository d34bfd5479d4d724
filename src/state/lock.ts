// The locks of a state folder: one gateway at a time, and short ones for single files. A lock is a file that names a process
// by its pid and start time. Commands find the gateway by it.
import { randomBytes } from "node:crypto";
import { link, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { GatewayError, systemCode } from "../core/errors.ts";
import { isJsonObject } from "../core/merge-patch.ts";
import { steadyNow } from "../core/steady.ts";
import { isDiskRefusal, isFull, parseJson, readIfPresent, stateError, writeState } from "./atomic-file.ts";
import { makeFolder } from "./folder.ts";

export interface StateLock {
  /** Of this run of the gateway. */
  readonly id: string;
  /**
   * Checks that the folder has this lock, with the newest address, and writes it where the disk refused that so far. Errors:
   * `state_unwritable`, `disk_full`; also where the lock is gone or another's, as the folder was deleted or replaced.
   */
  hold(): Promise<void>;
  /** Sets the address under which commands find the gateway; `hold` writes it. */
  announce(url: string): void;
  release(): Promise<void>;
}

export interface LockHolder {
  readonly pid: number;
  /** Start time by the kernel's clock, where it says: a pid alone may have been reused. */
  readonly started: string;
  /** Of this run of the gateway. */
  readonly id: string;
  /** Where it listens; null while it starts. */
  readonly url: string | null;
  /** See {@link folderKey}: a copy of a folder comes with a lock that is not its own. */
  readonly folder: string;
}

/** How long, in ms, and how often a lock is tried that is held for a moment only. */
const patienceMs = 5_000;
const pauseMs = 15;

/**
 * Locks the folder for this gateway. On a full or read-only disk the file is written once that is possible; until then, on
 * Linux, a name in the kernel keeps a second gateway out. Errors: `invalid_request` when another gateway has the folder, or
 * it cannot be used.
 */
export async function lockState(stateDir: string): Promise<StateLock> {
  await requireUnlocked(stateDir);
  await makeFolder(stateDir).catch((error: unknown) => Promise.reject(unusable(stateDir, error)));
  const name = await holdName(stateDir);
  const path = join(stateDir, "gateway.lock");
  const entry = await ownEntry(stateDir);
  let text = JSON.stringify(entry);
  let isWritten = false;
  let isHeld = true;
  const isMine = (found: string | null): boolean => found !== null && holderOf(found)?.id === entry.id;
  const take = async (): Promise<void> => {
    const holder = await takeFile(path, text, (seen) => livingHolder(seen, stateDir));
    if (holder) throw isTaken(stateDir, holder);
    isWritten = true;
  };
  try {
    await take();
  } catch (error) {
    if (!isDiskRefusal(error)) {
      name?.close();
      throw error instanceof GatewayError ? error : unusable(stateDir, error);
    }
  }
  return {
    id: entry.id,
    announce: (url) => {
      text = JSON.stringify({ ...entry, url });
    },
    hold: async () => {
      try {
        if (!isWritten) return await take();
        const found = await readIfPresent(path);
        if (found === text) return;
        if (isMine(found)) return await writeState(path, text);
        throw new GatewayError(
          "state_unwritable",
          `${path} is gone or another gateway's: put the folder back, or restart the gateway`,
        );
      } catch (error) {
        throw stateError(path, error);
      }
    },
    release: async () => {
      if (!isHeld) return;
      isHeld = false;
      // Of a lock that the disk keeps everybody sees that its process is gone.
      if (isMine(await readIfPresent(path).catch(() => null))) await rm(path).catch(() => undefined);
      name?.close();
    },
  };
}

/** Errors: `invalid_request` where another gateway has the folder. Writes nothing. */
export async function requireUnlocked(stateDir: string): Promise<void> {
  const holder = await lockHolder(stateDir);
  if (holder) throw isTaken(stateDir, holder);
}

/** The gateway that has the state folder; null where none does. */
export async function lockHolder(stateDir: string): Promise<LockHolder | null> {
  return livingHolder(await readLock(join(stateDir, "gateway.lock")), stateDir);
}

/** Runs `work` while no other process has the lock of that name. Errors: `invalid_request` where it stays taken. */
export async function withLock<T>(stateDir: string, name: string, work: () => Promise<T>): Promise<T> {
  const path = join(stateDir, name);
  const deadline = steadyNow() + patienceMs;
  for (;;) {
    const holder = await takeOnce(stateDir, path);
    if (holder === null) break;
    if (steadyNow() > deadline)
      throw new GatewayError("invalid_request", `process ${holder.pid} holds ${path}: try again later`);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  try {
    return await work();
  } finally {
    await rm(path, { force: true });
  }
}

async function takeOnce(stateDir: string, path: string): Promise<LockHolder | null> {
  try {
    await makeFolder(stateDir);
    return await takeFile(path, JSON.stringify(await ownEntry(stateDir)), (seen) => livingHolder(seen, stateDir));
  } catch (error) {
    throw error instanceof GatewayError ? error : unusable(stateDir, error);
  }
}

/** Creates a lock file; returns null, or the living holder of the one that exists. `living` decides from its text. */
export async function takeFile<T>(
  path: string,
  text: string,
  living: (seen: string | null) => Promise<T | null>,
): Promise<T | null> {
  const mine = `${path}.${randomBytes(6).toString("hex")}`;
  try {
    await writeFile(mine, text);
    for (;;) {
      try {
        // A link is made whole or not at all, and only where there is none.
        await link(mine, path);
        return null;
      } catch (error) {
        if (systemCode(error) !== "EEXIST") throw error;
      }
      const seen = await readLock(path);
      const holder = await living(seen);
      if (holder) return holder;
      await removeDead(path, seen, `${mine}.dead`);
    }
  } finally {
    await rm(mine, { force: true }).catch(() => undefined);
  }
}

/** Moved before it is deleted: another process may have taken the dead lock's place since it was read, and gets its own back. */
async function removeDead(path: string, seen: string | null, aside: string): Promise<void> {
  try {
    await rename(path, aside);
  } catch (error) {
    if (systemCode(error) === "ENOENT") return;
    throw error;
  }
  if ((await readIfPresent(aside)) !== seen) await link(aside, path).catch(() => undefined);
  await rm(aside, { force: true });
}

/**
 * Takes a name in the kernel that goes with the process and needs no disk, where there are such names (Linux). Null where
 * there are none, or none may be had: the file alone counts there. Errors: `invalid_request` where another has it.
 */
async function holdName(stateDir: string): Promise<Server | null> {
  if (process.platform !== "linux") return null;
  const path = `\0model-gateway-${await folderKey(stateDir)}`;
  const server = createServer((socket) => socket.destroy()).unref();
  return new Promise((resolve, reject) => {
    server.once("error", (error) => {
      if (systemCode(error) === "EADDRINUSE") reject(isTaken(stateDir, null));
      else resolve(null);
    });
    server.listen(path, () => resolve(server));
  });
}

/** Tells a folder from a copy of it. */
async function folderKey(path: string): Promise<string> {
  const { dev, ino } = await stat(path);
  return `${dev}-${ino}`;
}

/** Start time of this process by the kernel's clock; empty where the kernel does not tell. */
export async function ownStart(): Promise<string> {
  return (await look(process.pid))?.started ?? "";
}

async function ownEntry(stateDir: string): Promise<LockHolder> {
  const started = await ownStart();
  const id = randomBytes(8).toString("hex");
  return { pid: process.pid, started, id, url: null, folder: await folderKey(stateDir) };
}

/** What cannot be understood is of a process that is gone (pid 0). */
function holderOf(text: string): LockHolder {
  const value = parseJson(text);
  const { pid, started, id, url, folder } = isJsonObject(value) ? value : {};
  return {
    pid: Number.isSafeInteger(pid) ? (pid as number) : 0,
    started: typeof started === "string" ? started : "",
    id: typeof id === "string" ? id : "",
    url: typeof url === "string" ? url : null,
    folder: typeof folder === "string" ? folder : "",
  };
}

async function livingHolder(text: string | null, stateDir: string): Promise<LockHolder | null> {
  const holder = text === null ? null : holderOf(text);
  if (!holder || !(await isAlive(holder))) return null;
  return holder.folder === "" || holder.folder === (await folderKey(stateDir)) ? holder : null;
}

/** Null where there is none, also for a link to nothing. */
async function readLock(path: string): Promise<string | null> {
  try {
    return await readIfPresent(path);
  } catch (error) {
    const why = systemCode(error) ?? String(error);
    if (why === "ENOTDIR") return null;
    const remedy = why === "EISDIR" ? "delete it" : "use the account that the gateway runs under";
    throw new GatewayError("invalid_request", `${path} is no lock that can be read (${why}): ${remedy}`, {
      cause: error,
    });
  }
}

function isTaken(stateDir: string, holder: LockHolder | null): GatewayError {
  const who = holder ? ` (process ${holder.pid}${holder.url === null ? "" : `, ${holder.url}`})` : "";
  return new GatewayError("invalid_request", `another gateway${who} has the state folder ${stateDir}`);
}

function unusable(stateDir: string, error: unknown): GatewayError {
  const code = systemCode(error) ?? String(error);
  const remedy = isFull(error) ? "free some space on its disk" : "make it a folder that this user may write in";
  return new GatewayError(
    "invalid_request",
    `the state folder ${stateDir} cannot be used (${code}): ${remedy}, or name another with --state`,
    { cause: error },
  );
}

/** Whether the process still runs; a process id alone may have been reused. */
export async function isAlive({ pid, started }: Pick<LockHolder, "pid" | "started">): Promise<boolean> {
  if (pid <= 0) return false;
  try {
    process.kill(pid, 0);
  } catch (error) {
    // EPERM: it exists and belongs to another user.
    if (systemCode(error) !== "EPERM") return false;
  }
  const now = await look(pid);
  if (now === null || started === "") return true;
  return now.started === started && now.state !== "Z";
}

/** State and start time of a process; null where the kernel does not tell (macOS, Windows, a hidden /proc). */
async function look(pid: number): Promise<{ readonly state: string; readonly started: string } | null> {
  try {
    // Fields 3 and 22, counted after the command's name, which may hold blanks and brackets.
    const stat = await readFile(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return { state: fields[0] ?? "", started: fields[19] ?? "" };
  } catch {
    return null;
  }
}
