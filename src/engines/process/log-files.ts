// Bounded files of text in one folder: each has one earlier file beside it.
import { appendFile, mkdir, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { ignoreAbsent, systemCode } from "../../core/errors.ts";

export type LogFiles = ReturnType<typeof createLogFiles>;

/** Files of this many names are kept over a start, those written last. */
const mostNames = 100;

/** Its caller asks for one thing at a time. `mostBytes`: of one file. A text that is longer is cut at its beginning. */
export function createLogFiles(dir: string, mostBytes: number) {
  const sizes = new Map<string, number>();
  const pathOf = (name: string): string => join(dir, `${fileName(name)}.log`);

  async function append(name: string, text: string): Promise<void> {
    const path = pathOf(name);
    const bytes = Buffer.from(text).subarray(-mostBytes);
    const before = sizes.get(name) ?? (await stat(path).catch(ignoreAbsent))?.size ?? 0;
    const isFull = before > 0 && before + bytes.length > mostBytes;
    if (isFull) await rename(path, `${path}.1`);
    sizes.delete(name);
    await appendFile(path, bytes, { mode: 0o600 });
    sizes.set(name, isFull ? bytes.length : before + bytes.length);
  }

  return {
    /** Makes the folder, and removes the oldest files. Without it nothing is written: a state folder that was moved away stays away. */
    open: async (): Promise<void> => {
      await mkdir(dir, { mode: 0o700 }).catch((error: unknown) => {
        if (systemCode(error) !== "EEXIST") throw error;
      });
      const files = (await readdir(dir)).filter((file) => file.endsWith(".log"));
      const dated = await Promise.all(files.map(async (file) => ({ file, at: (await stat(join(dir, file))).mtimeMs })));
      const old = dated.toSorted((a, b) => b.at - a.at).slice(mostNames);
      for (const { file } of old) for (const end of ["", ".1"]) await rm(join(dir, `${file}${end}`), { force: true });
    },
    append,
    /** The last lines, of its earlier file too; null: there is none. */
    read: async (name: string, lines: number): Promise<string | null> => {
      const path = pathOf(name);
      const found = await Promise.all([`${path}.1`, path].map((file) => readFile(file).catch(ignoreAbsent)));
      const bytes = Buffer.concat(found.filter((part) => part !== null));
      return found.every((part) => part === null) ? null : bytes.toString("utf8", startOfLast(bytes, lines));
    },
    names: async (): Promise<string[]> => {
      const files = (await readdir(dir).catch(ignoreAbsent)) ?? [];
      return files.flatMap((file) => (file.endsWith(".log") ? nameOf(file.slice(0, -4)) : [])).toSorted();
    },
  };
}

function startOfLast(bytes: Buffer, lines: number): number {
  let end = bytes.length - 1;
  for (let left = lines; left > 0 && end > 0; left--) end = bytes.lastIndexOf("\n", end - 1);
  return end + 1;
}

/** `acme/alpha:Q8_0` is `acme--alpha--Q8_0`: no id has two dashes. */
function fileName(name: string): string {
  return name.replaceAll(/[/:]/g, "--").replaceAll(/[^\w.+@ -]/g, "_");
}

function nameOf(file: string): string {
  return file.replace("--", "/").replace("--", ":");
}
