// How many files a process may have open, and how many a gateway may need.
import { readFile } from "node:fs/promises";

/** A chat has a connection on either side of the gateway; the engines' pipes, the cache and the log need some files too. */
const filesPerConnection = 2;
const filesApart = 256;

/** `limit` null: not known, which it is on Linux only. */
export async function openFiles(
  maxConnections: number,
  pid: number | "self",
): Promise<{ readonly limit: number | null; readonly needed: number }> {
  const limits = await readFile(`/proc/${pid}/limits`, "utf8").catch(() => "");
  // The first number is the limit in force: at its start Node raises it as far as it may.
  const limit = /^Max open files +(\d+)/m.exec(limits)?.[1];
  return {
    limit: limit === undefined ? null : Number(limit),
    needed: maxConnections * filesPerConnection + filesApart,
  };
}
