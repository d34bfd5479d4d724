// One gateway per state folder, and an orderly end: the locks, and what signals do.
import { createHash, randomBytes } from "node:crypto";
import { copyFile, link, lstat, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { GatewayError, systemCode } from "./core/errors.ts";
import { isJsonObject } from "./core/merge-patch.ts";
import { steadyNow } from "./core/steady.ts";
import { parseJson, readIfPresent } from "./desired/atomic-file.ts";
import { makeFolder } from "./desired/folder.ts";

export interface StateLock {
  /**
   * Sees whether the folder still has this lock, and takes it again where it has none: the folder may have been deleted or
   * replaced under a running gateway. `retaken`: what lies in it may be another's. Errors: as {@link lockState}.
   */
  renew(): Promise<"held" | "retaken">;
  release(): Promise<void>;
}

interface LockHolder {
  readonly pid: number;
  /** Start time by the kernel's clock, where it says: a pid alone may have been reused. */
  readonly started: string;
  /** Tells one lock from every other. */
  readonly nonce: string;
  readonly path: string;
}

/** How often, and after how many ms, a lock is tried again that somebody else is just taking over from the dead. */
const attempts = 20;
const pauseMs = 15;

/** How long, in ms, to wait for a lock that is held for a moment only. */
const patienceMs = 5_000;

/** Errors: `invalid_request` when another gateway has the folder, or it cannot be written. */
export async function lockState(stateDir: string): Promise<StateLock> {
  const path = join(stateDir, "gateway.lock");
  // More than one where the folder was deleted meanwhile: the one of before may come back with it.
  const own = new Set([await takeState(stateDir)]);
  let held = true;
  const isHeld = async (): Promise<boolean> => own.has((await readIfPresent(path)) ?? "");
  return {
    renew: async () => {
      if (await isHeld().catch(() => false)) return "held";
      if (!held) throw new GatewayError("shutting_down", "the gateway is stopping");
      own.add(await takeState(stateDir));
      return "retaken";
    },
    release: async () => {
      // Once, and ours only: afterwards the lock is the next one's.
      if (held && (await isHeld().catch(() => false))) await rm(path, { force: true });
      held = false;
    },
  };
}

/** The text of the lock that was taken. */
async function takeState(stateDir: string): Promise<string> {
  const lock = await lockFile(stateDir, "gateway.lock");
  if (typeof lock !== "number") return lock.text;
  throw new GatewayError("invalid_request", `another gateway (process ${lock}) has the state folder ${stateDir}`);
}

/** Runs `work` while no other process has the lock of that name. Errors: `invalid_request` where it stays taken. */
export async function withLock<T>(stateDir: string, name: string, work: () => Promise<T>): Promise<T> {
  const deadline = steadyNow() + patienceMs;
  for (;;) {
    const lock = await lockFile(stateDir, name);
    if (typeof lock !== "number") {
      try {
        return await work();
      } finally {
        await lock.release();
      }
    }
    if (steadyNow() > deadline)
      throw new GatewayError("invalid_request", `process ${lock} holds ${join(stateDir, name)}: try again later`);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}

/** What the lock's file says, and its release; or the process that has it. */
async function lockFile(
  stateDir: string,
  name: string,
): Promise<{ readonly text: string; release(): Promise<void> } | number> {
  const path = join(stateDir, name);
  const nonce = randomBytes(6).toString("hex");
  const mine = `${path}.${nonce}`;
  const text = JSON.stringify({ pid: process.pid, started: (await look(process.pid))?.started ?? "", nonce });
  try {
    await makeFolder(stateDir);
    await writeFile(mine, text);
    for (let attempt = 1; ; attempt++) {
      const holder = await take(path, mine);
      if (holder === null) break;
      if (holder.path === path || attempt === attempts) return holder.pid;
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  } catch (error) {
    if (error instanceof GatewayError) throw error;
    throw new GatewayError(
      "invalid_request",
      `the state folder ${stateDir} cannot be used (${systemCode(error) ?? String(error)}): make it a folder that this user ` +
        "may write in, or name another with --state",
      { cause: error },
    );
  } finally {
    await rm(mine, { force: true }).catch(() => undefined);
  }
  return { text, release: () => rm(path, { force: true }) };
}

/** The process that has the state folder; null where none does. */
export async function lockHolder(stateDir: string): Promise<number | null> {
  const holder = await readHolder(join(stateDir, "gateway.lock"));
  return holder !== null && (await isAlive(holder)) ? holder.pid : null;
}

/**
 * Links `mine` to `path`; null when that is done, else who has it, or the right to it. A lock whose holder is dead is
 * replaced, and only by the one who has the right to: a lock of its own, named for the dead one. Merely deleting the
 * dead lock would let a second gateway, which read it a moment before, delete the lock of the first.
 */
async function take(path: string, mine: string): Promise<LockHolder | null> {
  for (;;) {
    try {
      // A link is made whole or not at all, and only if there is none.
      await link(mine, path);
      return null;
    } catch (error) {
      if (systemCode(error) !== "EEXIST") throw error;
    }
    const holder = await readHolder(path);
    if (holder === null) continue;
    if (await isAlive(holder)) return holder;
    const right = `${path}.after-${holder.nonce}`;
    const rival = await take(right, mine);
    if (rival !== null) return rival;
    try {
      if ((await readHolder(path))?.nonce !== holder.nonce) continue;
      const successor = `${right}.new`;
      await copyFile(mine, successor);
      await rename(successor, path);
      return null;
    } finally {
      await rm(right, { force: true });
    }
  }
}

/** Null where there is no lock; one that cannot be understood is of nobody alive (pid 0), and known by its content. */
async function readHolder(path: string): Promise<LockHolder | null> {
  const text = await readLock(path);
  if (text === null) return null;
  const value = parseJson(text);
  const nonce = createHash("sha256").update(text).digest("hex").slice(0, 12);
  if (!isJsonObject(value)) return { pid: 0, started: "", nonce, path };
  const { pid, started } = value;
  return {
    pid: Number.isSafeInteger(pid) ? (pid as number) : 0,
    started: typeof started === "string" ? started : "",
    nonce,
    path,
  };
}

async function readLock(path: string): Promise<string | null> {
  try {
    const text = await readIfPresent(path);
    if (text !== null) return text;
    // A link to nothing: no lock can be linked in its place and none be read from it, so it counts as a dead one's.
    const entry = await lstat(path).catch(() => null);
    return entry?.isSymbolicLink() ? "" : null;
  } catch (error) {
    throw new GatewayError(
      "invalid_request",
      `${path} is no lock that a gateway could read (${systemCode(error) ?? String(error)}): delete it`,
      { cause: error },
    );
  }
}

async function isAlive({ pid, started }: LockHolder): Promise<boolean> {
  if (pid <= 0) return false;
  try {
    process.kill(pid, 0);
  } catch (error) {
    // EPERM: it is there and belongs to somebody else.
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

/** 128 and the signal's number, as shells count. */
const exitCodes = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;

/**
 * ms in which the same signal again counts as once: Ctrl+C under npm comes twice, from the terminal and from npm, and so
 * does the end of a terminal, from the kernel and from the shell.
 */
const echoMs = 200;

/**
 * Runs `stop` at the first SIGINT, SIGTERM or SIGHUP, and exits with 0, or with 1 where that fails. A second signal exits at
 * once, with 128 and its number; processes of ours that still run are killed then.
 */
export function stopOnSignals(stop: () => Promise<void>, onError: (error: unknown) => void): void {
  let begunAt: number | null = null;
  for (const [name, code] of Object.entries(exitCodes)) {
    process.on(name, () => {
      const now = performance.now();
      if (begunAt !== null) {
        if (now - begunAt > echoMs) process.exit(code);
        return;
      }
      begunAt = now;
      stop().then(
        () => process.exit(0),
        (error: unknown) => {
          onError(error);
          process.exit(1);
        },
      );
    });
  }
}
