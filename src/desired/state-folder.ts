// The state folder under a running gateway: whether it is still ours, can be written, and has what belongs into it. A file
// or the whole folder that is deleted comes back; a folder that was put in its place is left as it is.
import { access, constants, lstat, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { GatewayError, systemCode, toGatewayError } from "../core/errors.ts";
import { equalJson, type Json } from "../core/merge-patch.ts";
import { parseJson, readIfPresent, writeState } from "./atomic-file.ts";

export interface StateFolderReport {
  readonly writable: boolean;
  /** Writable, FilesSetAside, StateUnwritable, DiskFull. */
  readonly reason: string;
  readonly message: string;
}

export interface StateFiles {
  /** Names a file that has to be there with this text; null: it need not be there. */
  keep(path: string, text: string | null): void;
  /**
   * Writes a file; on the disk when it resolves, and kept from then on. Errors: `disk_full`, `state_unwritable`; nothing is
   * changed then.
   */
  write(path: string, text: string): Promise<void>;
  /** A file that could not be understood lies under this name now. */
  noteAside(path: string): void;
}

export interface StateFolder extends StateFiles {
  report(): StateFolderReport;
  /** Looks after it now. */
  look(): Promise<void>;
  /** Looks after it from time to time. */
  start(everyMs: number): void;
  stop(): Promise<void>;
}

/** For a look without a running gateway: writes as asked, and keeps nothing. */
export const plainStateFiles: StateFiles = { keep: () => undefined, write: writeState, noteAside: () => undefined };

export function createStateFolder(options: {
  readonly stateDir: string;
  /** Of the folder's lock: see `StateLock`. Errors: where another gateway has the folder, or it cannot be used. */
  readonly renewLock: () => Promise<"held" | "retaken">;
  readonly onChange: (report: StateFolderReport) => void;
}): StateFolder {
  const { stateDir, renewLock } = options;
  const kept = new Map<string, string>();
  /** When kept files were last found whole, by their time and size. */
  const stamps = new Map<string, string>();
  let aside: string[] = [];
  let replaced = false;
  let report: StateFolderReport = { writable: true, reason: "Writable", message: `${stateDir} can be written` };
  let queue: Promise<unknown> = Promise.resolve();
  let waiting: Promise<void> | null = null;
  let timer: NodeJS.Timeout | null = null;

  /** One at a time: a file that is put back must not overtake a newer one. */
  function serialized<T>(task: () => Promise<T>): Promise<T> {
    const result = queue.then(task);
    queue = result.catch(() => undefined);
    return result;
  }

  function tell(next: StateFolderReport): void {
    if (next.reason === report.reason && next.message === report.message) return;
    report = next;
    options.onChange(next);
  }

  function tellFailure(thrown: unknown): void {
    const { reason, message } = toGatewayError(thrown);
    const until = "changes are refused until that is mended, and everything else goes on";
    tell({ writable: false, reason, message: `${message}: ${until}` });
  }

  /** Errors: `state_unwritable` where nothing may be written. */
  async function makeSure(): Promise<void> {
    const lock = await renewLock().catch((error: unknown) => {
      throw new GatewayError("state_unwritable", toGatewayError(error).message, { cause: error });
    });
    if (lock === "retaken" || replaced) replaced = await hasOthers();
    if (replaced) {
      throw new GatewayError(
        "state_unwritable",
        `another folder was put in the place of ${stateDir}: start the gateway anew to use it, or put the old one back`,
      );
    }
  }

  /** Whether there is a document of somebody else. */
  async function hasOthers(): Promise<boolean> {
    for (const [path, text] of kept) {
      const found = await readIfPresent(path).catch(() => "");
      if (found !== null && !sameJson(found, text)) return true;
    }
    return false;
  }

  /** What is gone, and what was damaged: after a kill the next start would begin without it. */
  async function putBack(): Promise<void> {
    for (const [path, text] of kept) {
      const entry = await stat(path).catch(() => null);
      const stamp = entry?.isFile() ? `${entry.mtimeMs}:${entry.size}` : null;
      if (stamp !== null && stamps.get(path) === stamp) continue;
      const found = stamp === null ? null : await readIfPresent(path);
      if (found === null || parseJson(found) === null) await writeState(path, text);
      else stamps.set(path, stamp ?? "");
    }
  }

  /** A disk that was full may have room again, and a folder that could not be written may be again: only trying tells. */
  async function tryToWrite(): Promise<void> {
    // Named as what a next start clears away.
    const place = join(stateDir, "check.00000000.tmp");
    await writeState(place, "x".repeat(4096));
    await rm(place);
  }

  async function look(): Promise<void> {
    try {
      await makeSure();
      await putBack();
      if (!report.writable || (await isReadOnly(stateDir))) await tryToWrite();
      tell(await wellReport());
    } catch (error) {
      tellFailure(error);
    }
  }

  async function wellReport(): Promise<StateFolderReport> {
    const there = await Promise.all(aside.map((path) => lstat(path).then(Boolean, () => false)));
    aside = aside.filter((_path, index) => there[index]);
    if (aside.length === 0) return { writable: true, reason: "Writable", message: `${stateDir} can be written` };
    return {
      writable: true,
      reason: "FilesSetAside",
      message: `damaged files were set aside, and what they said is not in force: look at ${aside.join(", ")}, and delete them`,
    };
  }

  /** At most one look waits, also where the disk hangs for minutes. */
  function lookSoon(): Promise<void> {
    return (waiting ??= serialized(() => {
      waiting = null;
      return look();
    }));
  }

  return {
    keep: (path, text) => void (text === null ? kept.delete(path) : kept.set(path, text)),
    noteAside: (path) => void aside.push(path),
    write: (path, text) =>
      serialized(async () => {
        try {
          await makeSure();
          await writeState(path, text);
          kept.set(path, text);
        } catch (error) {
          tellFailure(error);
          throw error;
        }
      }),
    report: () => report,
    look: lookSoon,
    start: (everyMs) => {
      timer = setInterval(() => void lookSoon(), everyMs);
      timer.unref();
    },
    stop: async () => {
      if (timer) clearInterval(timer);
      await queue;
    },
  };
}

async function isReadOnly(path: string): Promise<boolean> {
  return access(path, constants.W_OK).then(
    () => false,
    (error: unknown) => systemCode(error) !== "ENOENT",
  );
}

function sameJson(a: string, b: string): boolean {
  return equalJson(parseJson(a) as Json, parseJson(b) as Json);
}
