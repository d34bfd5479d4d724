// The state folder under a running gateway: whether it is still this gateway's and can be written. Until it can, changes are
// refused and the reason is reported.
import { access, constants, lstat, rm } from "node:fs/promises";
import { join } from "node:path";
import { systemCode, toGatewayError } from "../core/errors.ts";
import { createSerial } from "../core/serial.ts";
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
  /** A damaged file was renamed to this path. */
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

/** Without a running gateway. */
export const plainStateFiles: StateFiles = { write: writeState, noteAside: () => undefined };

export function createStateFolder(options: {
  readonly stateDir: string;
  /** Errors: `disk_full`, `state_unwritable` where the folder is not locked for this gateway. */
  readonly hold: () => Promise<void>;
  readonly onChange: (report: StateFolderReport) => void;
}): StateFolder {
  const { stateDir, hold } = options;
  const serial = createSerial();
  let aside: readonly string[] = [];
  let report: StateFolderReport = { writable: true, reason: "Writable", message: `${stateDir} can be written` };
  const wellReport = report;
  let queued: Promise<void> | null = null;
  let timer: NodeJS.Timeout | undefined;

  function set(next: StateFolderReport): void {
    if (next.reason === report.reason && next.message === report.message) return;
    report = next;
    options.onChange(next);
  }

  function setFailed(thrown: unknown): void {
    const { reason, message } = toGatewayError(thrown);
    set({ writable: false, reason, message: `${message}: until that is repaired, changes are refused` });
  }

  async function check(): Promise<void> {
    try {
      await hold();
      if (!report.writable || (await isReadOnly(stateDir))) await tryToWrite(stateDir);
      const present = await Promise.all(aside.map((path) => lstat(path).then(Boolean, () => false)));
      aside = aside.filter((_path, index) => present[index]);
      const message = `damaged files were set aside, and their content is not in force: ${aside.join(", ")}`;
      set(aside.length === 0 ? wellReport : { writable: true, reason: "FilesSetAside", message });
    } catch (error) {
      setFailed(error);
    }
  }

  /** At most one check waits, also where the disk hangs for minutes. */
  function look(): Promise<void> {
    return (queued ??= serial(() => {
      queued = null;
      return check();
    }));
  }

  return {
    noteAside: (path) => {
      aside = [...aside, path];
    },
    write: (path, text) =>
      serial(async () => {
        try {
          await hold();
          await writeState(path, text);
        } catch (error) {
          setFailed(error);
          throw error;
        }
      }),
    report: () => report,
    look,
    start: (everyMs) => {
      timer = setInterval(() => void look(), everyMs).unref();
    },
    stop: () => {
      clearInterval(timer);
      return serial(async () => undefined);
    },
  };
}

/** A full disk may have space again, and a read-only folder may be writable: only a try shows it. */
async function tryToWrite(stateDir: string): Promise<void> {
  // Named as a leftover that the next start removes.
  const place = join(stateDir, "check.00000000.tmp");
  await writeState(place, "x".repeat(4096));
  await rm(place);
}

async function isReadOnly(path: string): Promise<boolean> {
  return access(path, constants.W_OK).then(
    () => false,
    (error: unknown) => systemCode(error) !== "ENOENT",
  );
}
