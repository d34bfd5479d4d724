// One gateway per state folder, and an orderly end: the lock, and what signals do.
import { randomBytes } from "node:crypto";
import { link, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { GatewayError, systemCode } from "./core/errors.ts";

export interface StateLock {
  release(): Promise<void>;
}

interface LockHolder {
  readonly pid: number;
  /** Start time by the kernel's clock, where it says: a pid alone may have been reused. */
  readonly started: string;
}

/** Errors: `invalid_request` when another gateway has the folder, or it cannot be written. */
export async function lockState(stateDir: string): Promise<StateLock> {
  const path = join(stateDir, "gateway.lock");
  const mine = join(stateDir, `gateway.lock.${randomBytes(4).toString("hex")}`);
  try {
    await mkdir(stateDir, { recursive: true });
    await writeFile(mine, JSON.stringify({ pid: process.pid, started: await startTime(process.pid) } satisfies LockHolder));
  } catch (error) {
    throw new GatewayError("invalid_request", `the state folder ${stateDir} cannot be written (${systemCode(error) ?? String(error)})`, { cause: error });
  }
  try {
    for (let attempt = 0; attempt < 5; attempt++) {
      try {
        // A link is made whole or not at all, and only if there is none.
        await link(mine, path);
        return { release: () => rm(path, { force: true }) };
      } catch (error) {
        if (systemCode(error) !== "EEXIST") throw error;
      }
      const holder = await readHolder(path);
      if (holder && (await isAlive(holder))) {
        throw new GatewayError("invalid_request", `another gateway (process ${holder.pid}) has the state folder ${stateDir}`);
      }
      await rm(path, { force: true });
    }
    throw new GatewayError("invalid_request", `the lock of ${stateDir} could not be taken`);
  } finally {
    await rm(mine, { force: true });
  }
}

async function readHolder(path: string): Promise<LockHolder | null> {
  try {
    return JSON.parse(await readFile(path, "utf8")) as LockHolder;
  } catch {
    return null;
  }
}

async function isAlive({ pid, started }: LockHolder): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return systemCode(error) === "EPERM";
  }
  return (await startTime(pid)) === started;
}

async function startTime(pid: number): Promise<string> {
  try {
    // Field 22, counted after the command's name, which may hold blanks and brackets.
    const stat = await readFile(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "";
  } catch {
    return "";
  }
}

/** Runs `stop` at the first SIGINT or SIGTERM and exits with its outcome; a second signal exits at once. */
export function stopOnSignals(stop: () => Promise<void>, onError: (error: unknown) => void): void {
  let stopping = false;
  for (const name of ["SIGINT", "SIGTERM"] as const) {
    process.on(name, () => {
      if (stopping) process.exit(1);
      stopping = true;
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
