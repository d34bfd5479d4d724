// The locks of a state folder: one gateway at a time, and short ones for single files. A lock is a file that names a process
// by its pid and start time. Commands find the gateway by it.
import { randomBytes } from "node:crypto";
import { link, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { GatewayError, systemCode } from "../core/errors.ts";
import { isJsonObject, parseJson } from "../core/json.ts";
import { steadyNow } from "../core/steady.ts";
import { isDiskRefusal, isFull, readIfPresent, stateError, writeState } from "./atomic-file.ts";
import { fileStamp } from "./files.ts";
import { makeFolder } from "./folder.ts";

export type StateLock = Awaited<ReturnType<typeof lockState>>;

export interface LockHolder {
  readonly pid: number;
  /** Start time by the kernel's clock, empty where it is unknown: a pid alone may have been reused. */
  readonly started: string;
  /** Of this run of the gateway, or of the work that the lock is for. */
  readonly id: string;
  /** Where it listens; null while it starts. */
  readonly url: string | null;
}

/** How long, in ms, and how often a lock is tried that is held for a moment only. */
const patienceMs = 5_000;
const pauseMs = 15;

/** On a disk that takes no writes `hold` makes the lock later. Errors: `invalid_request` where the folder is taken or cannot be used. */
export async function lockState(stateDir: string) {
  const path = join(stateDir, "gateway.lock");
  const entry = await ownHolder(newId());
  let text = JSON.stringify(entry);
  let isWritten = false;
  /** Of the file when it was last read, and was as it should be. */
  let rightStamp = "";
  const isMine = (found: string | null): boolean => found !== null && holderOf(found).id === entry.id;
  const take = async (): Promise<void> => {
    const holder = await takeFile(path, text, livingHolder);
    if (holder) throw isTaken(stateDir, holder);
    isWritten = true;
  };
  try {
    await requireUnlocked(stateDir);
    await makeFolder(stateDir);
    await take();
  } catch (error) {
    if (!isDiskRefusal(error)) throw unusable(stateDir, error);
  }
  return {
    /** Of this run of the gateway. */
    id: entry.id,
    /** Sets the address under which commands find the gateway; `hold` writes it. */
    announce: (url: string): void => {
      text = JSON.stringify({ ...entry, url });
      rightStamp = "";
    },
    /** Writes the newest address. Errors: `state_unwritable`, `disk_full`; also where the lock is gone or another's. */
    hold: async (): Promise<void> => {
      try {
        if (!isWritten) return await take();
        // It is looked at every few seconds and before each write; to read it takes five calls.
        const stamp = await fileStamp(path);
        if (stamp !== "" && stamp === rightStamp) return;
        const found = await readIfPresent(path);
        if (found === text) rightStamp = stamp;
        else if (isMine(found)) await writeState(path, text);
        else
          throw new GatewayError(
            "state_unwritable",
            `${path} is gone or another gateway's: put the folder back, or restart the gateway`,
          );
      } catch (error) {
        throw stateError(path, error);
      }
    },
    release: async (): Promise<void> => {
      // A lock that the disk keeps is stale once its process is gone.
      if (isMine(await readIfPresent(path).catch(() => null))) await rm(path).catch(() => undefined);
    },
  };
}

/** Errors: `invalid_request` where another gateway has the folder. Writes nothing. */
export async function requireUnlocked(stateDir: string): Promise<void> {
  const holder = await lockHolder(stateDir);
  if (holder) throw isTaken(stateDir, holder);
}

/** The gateway that has the state folder; null where none does. Errors: `invalid_request` where the lock cannot be read. */
export async function lockHolder(stateDir: string): Promise<LockHolder | null> {
  try {
    return await livingHolder(await readIfPresent(join(stateDir, "gateway.lock")));
  } catch (error) {
    if (systemCode(error) === "ENOTDIR") return null;
    throw unusable(stateDir, error);
  }
}

/** Runs `work` while no other process has the lock of that name. Errors: `invalid_request` where it stays taken. */
export async function withLock<T>(stateDir: string, name: string, work: () => Promise<T>): Promise<T> {
  const path = join(stateDir, name);
  const text = JSON.stringify(await ownHolder(newId()));
  const deadline = steadyNow() + patienceMs;
  try {
    await makeFolder(stateDir);
    for (;;) {
      const holder = await takeFile(path, text, livingHolder);
      if (!holder) break;
      if (steadyNow() > deadline)
        throw new GatewayError("invalid_request", `process ${holder.pid} holds ${path}: try again later`);
      await delay(pauseMs);
    }
  } catch (error) {
    throw unusable(stateDir, error);
  }
  try {
    return await work();
  } finally {
    await rm(path, { force: true });
  }
}

/** null: it is ours; else its living holder, as `living` decides from its text. Errors: `state_unwritable` where it cannot be replaced. */
export async function takeFile<T>(
  path: string,
  text: string,
  living: (seen: string | null) => Promise<T | null>,
): Promise<T | null> {
  const mine = `${path}.${randomBytes(6).toString("hex")}`;
  const claim = `${path}.claim`;
  const deadline = steadyNow() + patienceMs;
  try {
    await writeFile(mine, text);
    while (steadyNow() < deadline) {
      if (await linked(mine, path)) return null;
      const seen = await readIfPresent(path);
      const holder = await living(seen);
      if (holder) return holder;
      if (seen === null) await delay(pauseMs);
      else if (!(await linked(mine, claim))) {
        const claimed = await readIfPresent(claim);
        // Of a process that died while it replaced the lock.
        if (claimed !== null && !(await living(claimed))) await rm(claim, { force: true });
        await delay(pauseMs);
      } else if (await replaced(path, seen, mine, claim)) return null;
    }
    throw new GatewayError("state_unwritable", `${path} cannot be replaced: delete it`);
  } finally {
    await rm(mine, { force: true }).catch(() => undefined);
  }
}

/** A link is made whole or not at all; false where there is a file already. */
async function linked(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    if (systemCode(error) === "EEXIST") return false;
    throw error;
  }
}

/** Ends the claim. Only under it: without it, two that saw the same dead lock each replaced it, the second one a living lock. */
async function replaced(path: string, dead: string, mine: string, claim: string): Promise<boolean> {
  try {
    if ((await readIfPresent(path)) !== dead) return false;
    await rename(mine, path);
    return true;
  } finally {
    await rm(claim);
  }
}

/** This process as the holder of a lock. */
export async function ownHolder(id: string): Promise<LockHolder> {
  return { pid: process.pid, started: await ownStart(), id, url: null };
}

function newId(): string {
  return randomBytes(8).toString("hex");
}

/** An unreadable text is of a process that is gone (pid 0). */
export function holderOf(text: string): LockHolder {
  const value = parseJson(text);
  const { pid, started, id, url } = isJsonObject(value) ? value : {};
  return {
    pid: Number.isSafeInteger(pid) ? (pid as number) : 0,
    started: typeof started === "string" ? started : "",
    id: typeof id === "string" ? id : "",
    url: typeof url === "string" ? url : null,
  };
}

async function livingHolder(text: string | null): Promise<LockHolder | null> {
  const holder = text === null ? null : holderOf(text);
  return holder && (await isAlive(holder)) ? holder : null;
}

function isTaken(stateDir: string, { pid, url }: LockHolder): GatewayError {
  const who = `process ${pid}${url === null ? "" : `, ${url}`}`;
  return new GatewayError("invalid_request", `another gateway (${who}) has the state folder ${stateDir}`);
}

function unusable(stateDir: string, error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  const code = systemCode(error) ?? String(error);
  const remedy = isFull(error) ? "free some space on its disk" : "make it a folder that this user may write in";
  return new GatewayError(
    "invalid_request",
    `the state folder ${stateDir} cannot be used (${code}): ${remedy}, or name another with --state`,
    { cause: error },
  );
}

/** Start time of this process by the kernel's clock; empty where it is unknown. */
export async function ownStart(): Promise<string> {
  return (await statOf(process.pid))?.started ?? "";
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
  const now = await statOf(pid);
  if (now === null || started === "") return true;
  return now.started === started && now.state !== "Z";
}

/** State, process group and start time of a process; null without /proc (macOS, Windows). */
export async function statOf(pid: number): Promise<Readonly<Record<"state" | "group" | "started", string>> | null> {
  try {
    // Fields 3, 5 and 22, counted after the command's name, which may have blanks and brackets.
    const stat = await readFile(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return { state: fields[0] ?? "", group: fields[2] ?? "", started: fields[19] ?? "" };
  } catch {
    return null;
  }
}
