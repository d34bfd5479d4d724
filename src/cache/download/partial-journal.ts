// What a partial's journal says: which bytes of the partial are there, for whom, and who writes it. Names no place.
// Two slots, written in turns and each with a checksum: one that was torn by a kill or a power cut is no record.
import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { systemCode } from "../../core/errors.ts";
import { type Extents, readExtents } from "./extents.ts";
import type { Owner } from "./partial-owner.ts";

export interface JournalRecord {
  /** `owner/name:tag` of the model that the file is for. */
  readonly model: string;
  /** Bytes of the whole file. */
  readonly size: number;
  /** Given to the system: there as long as it runs, whatever happens to the gateway. */
  readonly written: Extents;
  /** On the disk: there after a power cut too. */
  readonly synced: Extents;
  readonly owner: Owner;
  /** The file that was found to have the right digest: it gets the blob's name. */
  readonly checked?: FileMark;
}

/** Tells a file from another one under its name, and from itself after a change. */
export interface FileMark {
  readonly inode: number;
  /** ms */
  readonly modifiedAt: number;
}

export interface JournalWriter {
  write(record: JournalRecord): Promise<void>;
  sync(): Promise<void>;
  close(): Promise<void>;
}

const slotBytes = 8192;
/** Fewer extents than there are only cost bytes that are fetched again; a record that does not fit costs all. */
const mostExtents = 64;

/** Starts a journal. There must be none of that name: two writers of one would each take the other's record for its own. */
export async function openJournal(path: string): Promise<JournalWriter> {
  const handle = await open(path, "wx");
  let next = 1;
  return {
    async write(record) {
      await writeAll(handle, slot(record, next), (next % 2) * slotBytes);
      next++;
    },
    sync: () => handle.datasync(),
    close: () => handle.close(),
  };
}

async function writeAll(handle: FileHandle, bytes: Buffer, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    done += (await handle.write(bytes, done, bytes.length - done, position + done)).bytesWritten;
  }
}

/** The last whole record, or null where there is none. Other errors than absence are thrown as they come. */
export async function readJournal(path: string): Promise<JournalRecord | null> {
  try {
    // What is no plain file is none of ours: a link may lead anywhere, and a pipe would be waited for.
    const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const bytes = Buffer.alloc(2 * slotBytes);
      const { bytesRead } = await handle.read(bytes, 0, bytes.length, 0);
      const found = [0, 1].map((index) => readSlot(bytes.subarray(0, bytesRead), index));
      const last = found.reduce((best, one) => (one && one.sequence > (best?.sequence ?? 0) ? one : best), null);
      return last?.record ?? null;
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (["ENOENT", "ELOOP"].includes(systemCode(error) ?? "")) return null;
    throw error;
  }
}

/** All slots are of one size, so that a later record needs no more room on the disk than the first. */
function slot(record: JournalRecord, sequence: number): Buffer {
  const { written, synced } = record;
  const kept = { ...record, written: written.slice(0, mostExtents), synced: synced.slice(0, mostExtents), sequence };
  const text = JSON.stringify(kept);
  const bytes = Buffer.alloc(slotBytes, " ");
  bytes.write(`${checksum(text)} ${text}\n`);
  return bytes;
}

function readSlot(bytes: Buffer, index: number): { record: JournalRecord; sequence: number } | null {
  const line = bytes.toString("utf8", index * slotBytes, (index + 1) * slotBytes).trimEnd();
  const text = line.slice(line.indexOf(" ") + 1);
  if (text === "" || line.slice(0, line.indexOf(" ")) !== checksum(text)) return null;
  const value: unknown = JSON.parse(text);
  const written = readExtents(member(value, "written"));
  const synced = readExtents(member(value, "synced"));
  const [model, size, sequence] = ["model", "size", "sequence"].map((name) => member(value, name));
  const owner = member(value, "owner");
  const [boot, space, pid] = ["boot", "space", "pid"].map((name) => member(owner, name));
  if (!written || !synced || typeof model !== "string" || typeof size !== "number") return null;
  if (typeof sequence !== "number" || typeof boot !== "string" || typeof space !== "string") return null;
  if (typeof pid !== "number") return null;
  const gateway = member(owner, "gateway");
  const record = {
    model,
    size,
    written,
    synced,
    owner: { boot, space, pid, gateway: typeof gateway === "string" ? gateway : "" },
  };
  const checked = member(value, "checked");
  const [inode, modifiedAt] = ["inode", "modifiedAt"].map((name) => member(checked, name));
  const isMark = typeof inode === "number" && typeof modifiedAt === "number";
  return { record: isMark ? { ...record, checked: { inode, modifiedAt } } : record, sequence };
}

function checksum(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}

function member(value: unknown, name: string): unknown {
  if (typeof value !== "object" || value === null) return undefined;
  return Object.getOwnPropertyDescriptor(value, name)?.value;
}
