// The sidecar of a partial: which bytes of the file are on the disk, for which model, and which gateway downloads it. After
// the download it says which file became the blob, until a snapshot links that.
import type { Stats } from "node:fs";
import { lstat } from "node:fs/promises";
import { isJsonObject } from "../../core/merge-patch.ts";
import { parseJson, readIfPresent, writeAtomic } from "../../state/atomic-file.ts";
import { besidePartial } from "../layout/layout.ts";
import { type Extents, readExtents } from "./extents.ts";

export interface Sidecar {
  /** `owner/name:tag` of the model that the file is for. */
  readonly model: string;
  /** Bytes of the whole file. */
  readonly size: number;
  /** Id of the gateway that downloads it. */
  readonly gateway: string;
  /** On the disk: there after a power cut too. */
  readonly written: Extents;
  /** The file that was found to have the right digest: it gets the blob's name. */
  readonly stored?: FileMark;
}

/** Tells a file from another one under its name, and from itself after a change. */
export interface FileMark {
  readonly inode: number;
  /** ms */
  readonly modifiedAt: number;
}

export function markOf({ ino, mtimeMs }: Stats): FileMark {
  return { inode: ino, modifiedAt: mtimeMs };
}

/** A plain file there; undefined for anything else: the target of a link is never ours. */
export async function fileAt(path: string): Promise<Stats | undefined> {
  const found = await lstat(path).catch(() => undefined);
  return found?.isFile() ? found : undefined;
}

export async function writeSidecar(partial: string, sidecar: Sidecar): Promise<void> {
  await writeAtomic(besidePartial(partial, "sidecar"), JSON.stringify(sidecar));
}

/** Null where there is none, or one that is damaged. */
export async function readSidecar(partial: string): Promise<Sidecar | null> {
  const path = besidePartial(partial, "sidecar");
  if (!(await fileAt(path))) return null;
  const value = parseJson((await readIfPresent(path)) ?? "");
  if (!isJsonObject(value)) return null;
  const { model, size, gateway, stored } = value;
  const written = readExtents(value["written"]);
  if (!written || typeof model !== "string" || typeof size !== "number" || typeof gateway !== "string") return null;
  const { inode, modifiedAt } = isJsonObject(stored) ? stored : {};
  const isMark = typeof inode === "number" && typeof modifiedAt === "number";
  return { model, size, gateway, written, ...(isMark ? { stored: { inode, modifiedAt } } : {}) };
}
