// The state folder under a running gateway: whether it is still this gateway's, and can be written. What cannot be written is
// refused and reported, until the folder is mended.
import { access, constants, lstat, rm } from "node:fs/promises";
import { join } from "node:path";
import { systemCode, toGatewayError } from "../core/errors.ts";
import { writeState } from "./atomic-file.ts";

export interface StateFolderReport {
  readonly writable: boolean;
  /** Writable, FilesSetAside, StateUnwritable, DiskFull. */
  readonly reason: string;
  readonly message: string;
}

export interface StateFiles {
  /** Writes a file; on the disk when it resolves. Errors: `disk_full`, `state_unwritable`; nothing is changed then. */
  write(path: string, text: string): Promise<void>;
  /** A file that could not be understood lies under this name now. */
  noteAside(path: string): void;
}

export interface StateFolder extends StateFiles {
  report(): StateFolderReport;
  /** Checks it now. */
  look(): Promise<void>;
  /** Checks it from time to time. */
  start(everyMs: number): void;
  stop(): Promise<void>;
}

/** For a look without a running gateway. */
export const plainStateFiles: StateFiles = { write: writeState, noteAside: () => undefined };

export function createStateFolder(options: {
  readonly stateDir: string;
  /** Errors: `disk_full`, `state_unwritable` where the folder is not locked for this gateway. */
  readonly hold: () => Promise<void>;
  readonly onChange: (report: StateFolderReport) => void;
}): StateFolder {
  const { stateDir, hold } = options;
  const well: StateFolderReport = { writable: true, reason: "Writable", message: `${stateDir} can be written` };
  let aside: string[] = [];
  let report = well;
  let queue: Promise<unknown> = Promise.resolve();
  let waiting: Promise<void> | null = null;
  let timer: NodeJS.Timeout | null = null;

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

  /** A disk that was full may have space again, and a folder that could not be written may be again: only trying tells. */
  async function tryToWrite(): Promise<void> {
    // Named as what a next start clears away.
    const place = join(stateDir, "check.00000000.tmp");
    await writeState(place, "x".repeat(4096));
    await rm(place);
  }

  async function look(): Promise<void> {
    try {
      await hold();
      if (!report.writable || (await isReadOnly(stateDir))) await tryToWrite();
      tell(await wellReport());
    } catch (error) {
      tellFailure(error);
    }
  }

  async function wellReport(): Promise<StateFolderReport> {
    const there = await Promise.all(aside.map((path) => lstat(path).then(Boolean, () => false)));
    aside = aside.filter((_path, index) => there[index]);
    if (aside.length === 0) return well;
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
    noteAside: (path) => void aside.push(path),
    write: (path, text) =>
      serialized(async () => {
        try {
          await hold();
          await writeState(path, text);
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
