// Replaces gateway.yaml with another text, unless its author saves meanwhile: then the save stays. A rename over the file would lose a save
// that came between the last look and the rename.
import { randomBytes } from "node:crypto";
import { existsSync, linkSync, lstatSync, readFileSync, readlinkSync, renameSync, rmSync } from "node:fs";
import { chown, open, realpath, rename, rm, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { systemCode } from "../core/errors.ts";

/** Beside the file while it is replaced, and after a crash in between. */
const asideName = (target: string): string => `${target}.replaced`;

/** False, and nothing is changed, where the file does not hold `seen` any more. Errors: of the file system; the file is then as it was. */
export async function replaceFile(path: string, seen: Buffer, text: string): Promise<boolean> {
  // A link stays a link.
  const target = await realpath(path);
  const temporary = `${target}.${randomBytes(4).toString("hex")}.tmp`;
  try {
    await writeAs(target, temporary, text);
    return exchange(target, temporary, seen);
  } finally {
    await rm(temporary, { force: true }).catch(() => undefined);
  }
}

/** On the disk, with the old file's mode and owner: else its author could not save it any more. */
async function writeAs(target: string, temporary: string, text: string): Promise<void> {
  const { mode, uid, gid } = await stat(target);
  const file = await open(temporary, "wx", mode & 0o777);
  try {
    await file.writeFile(text);
    await file.chmod(mode & 0o777);
    await file.sync();
  } finally {
    await file.close();
  }
  // Only root may, and only root has to.
  if (process.getuid?.() === 0) await chown(temporary, uid, gid);
}

/** Without a pause, as the file has no name in between. */
function exchange(target: string, temporary: string, seen: Buffer): boolean {
  const aside = asideName(target);
  renameSync(target, aside);
  try {
    if (!readFileSync(aside).equals(seen)) {
      putBack(aside, target);
      return false;
    }
    const isOurs = linked(temporary, target);
    // An editor that had the old file open may have written into it since.
    if (isOurs && !readFileSync(aside).equals(seen)) {
      renameSync(aside, target);
      return false;
    }
    rmSync(aside);
    return isOurs;
  } catch (error) {
    if (existsSync(aside)) putBack(aside, target);
    throw error;
  }
}

/** False where a save came first. */
function linked(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (systemCode(error) === "EEXIST") return false;
    // A file system without hard links.
    renameSync(from, to);
    return true;
  }
}

/** Where it was saved again in between, what was set aside is older. */
function putBack(aside: string, target: string): void {
  linked(aside, target);
  rmSync(aside, { force: true });
}

/** After a crash between two steps of {@link replaceFile}: the file has its name again. */
export async function restoreReplaced(path: string): Promise<void> {
  const link = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true ? readlinkSync(path) : null;
  const target = link === null ? path : resolve(dirname(path), link);
  if (!existsSync(target) && existsSync(asideName(target))) await rename(asideName(target), target);
}
