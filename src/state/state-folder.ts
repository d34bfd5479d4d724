// The state folder under a running gateway: whether it is still this gateway's and can be written. Until it can, changes are
// refused and the reason is reported.
import { randomBytes } from "node:crypto";
import { access, constants, lstat, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { GatewayError, reasonOf, systemCode, toGatewayError } from "../core/errors.ts";
import { parseJson } from "../core/json.ts";
import { createSerial } from "../core/serial.ts";
import { readIfPresent, writeState } from "./atomic-file.ts";
import { repeat } from "./repeat.ts";

export interface StateFolderReport {
  readonly writable: boolean;
  /** Writable, FilesSetAside, StateUnwritable, DiskFull. */
  readonly reason: string;
  readonly message: string;
}

export interface StateFiles {
  /**
   * Writes a file. When it resolves the new text is on the disk; not `isFinal`: the new one or the one before, which is enough for what
   * is made again from another file. Errors: `disk_full`, `state_unwritable`; nothing is changed then.
   */
  write(path: string, text: string, isFinal?: boolean): Promise<void>;
  /** Renames a damaged file, so that nothing of it is lost; answers with its new path. */
  setAside(path: string): Promise<string>;
}

export type StateFolder = ReturnType<typeof createStateFolder>;

/** Without a running gateway. */
export const plainStateFiles: StateFiles = { write: writeState, setAside: renameAside };

/** For a look from outside. */
export const untouchedFiles: StateFiles = { write: async () => undefined, setAside: async (path) => path };

async function renameAside(path: string): Promise<string> {
  const aside = `${path}.corrupt-${Date.now()}`;
  await rename(path, aside);
  return aside;
}

/** null: no file. What `read` answers null to, or is no file (a folder, a link to nothing), is set aside. Errors: `state_unwritable`. */
export async function readJsonState<T>(
  path: string,
  read: (value: unknown) => T | null,
  { files, warn }: { readonly files: StateFiles; readonly warn: (message: string, fields: object) => void },
): Promise<T | null> {
  try {
    const text = await readIfPresent(path).catch((error: unknown) => {
      if (["EISDIR", "ELOOP"].includes(systemCode(error) ?? "")) return "";
      throw error;
    });
    if (text === null && !(await isThere(path))) return null;
    const understood = read(parseJson(text ?? ""));
    if (understood !== null) return understood;
    warn("unreadable state file set aside", { path: await files.setAside(path) });
    return null;
  } catch (error) {
    const why = reasonOf(error);
    throw new GatewayError("state_unwritable", `${path} cannot be read (${why})`, { cause: error });
  }
}

/** Of a link the link itself. */
function isThere(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  );
}

/** gateway.id: sixteen hexadecimal digits, made at the first start, that tell it from others that share its model cache. */
export async function openGatewayId(stateDir: string, files: StateFiles): Promise<string> {
  const path = join(stateDir, "gateway.id");
  const known = /^([0-9a-f]{16})\n?$/.exec((await readIfPresent(path)) ?? "")?.[1];
  if (known !== undefined) return known;
  const id = randomBytes(8).toString("hex");
  // A disk that refuses it is reported by the folder; the next start makes another one.
  await files.write(path, `${id}\n`).catch(() => undefined);
  return id;
}

export function createStateFolder(options: {
  readonly stateDir: string;
  /** Errors: `disk_full`, `state_unwritable` where the folder is not locked for this gateway. */
  readonly hold: () => Promise<void>;
  readonly onChange: (report: StateFolderReport) => void;
}) {
  const { stateDir, hold } = options;
  const serial = createSerial();
  let aside: readonly string[] = [];
  let report: StateFolderReport = { writable: true, reason: "Writable", message: `${stateDir} can be written` };
  const wellReport = report;
  let queued: Promise<void> | null = null;
  let stopLooking = (): void => undefined;

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
      const present = await Promise.all(aside.map(isThere));
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

  const files: StateFiles = {
    setAside: async (path) => {
      const moved = await renameAside(path);
      aside = [...aside, moved];
      return moved;
    },
    write: (path, text, isFinal) =>
      serial(async () => {
        try {
          await hold();
          await writeState(path, text, isFinal);
        } catch (error) {
          // A folder that goes during the write is ENOENT for its file, and has a remedy of its own.
          const cause: unknown = await hold().then(
            () => error,
            (why: unknown) => why,
          );
          setFailed(cause);
          throw cause;
        }
      }),
  };
  return {
    ...files,
    report: () => report,
    /** Checks it now. */
    look,
    /** Checks it from time to time. */
    start: (everyMs: number): void => {
      stopLooking = repeat(everyMs, () => void look());
    },
    stop: (): Promise<void> => {
      stopLooking();
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
