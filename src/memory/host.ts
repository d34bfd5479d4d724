// Main memory as it is at this moment, by /proc and the cgroups of this process. Synchronous: some small files that no disk is
// waited for, read once per placement.
import { existsSync, readFileSync } from "node:fs";
import { totalmem } from "node:os";
import { join } from "node:path";
import { systemCode } from "../core/errors.ts";
import type { DeviceMemory } from "./limits.ts";

export type HostReader = ReturnType<typeof createHostReader>;

/** Files of a cgroup, absolute. */
interface Group {
  readonly limit: string;
  readonly used: string;
  readonly stat: string;
  /** The page cache's part of what is used, which the system takes back. */
  readonly cache: RegExp;
}

/** `root`: where the file systems of the system are, for tests. */
export function createHostReader(root = "/") {
  const read = (path: string): string => readIfThere(join(root, path));
  const groups = groupsOf(root, read("proc/self/cgroup"));

  return {
    /** Without /proc only what there is. */
    memory: (): DeviceMemory => {
      const meminfo = read("proc/meminfo");
      const total = kilobytesOf(meminfo, "MemTotal") ?? totalmem();
      const machine = { total, free: kilobytesOf(meminfo, "MemAvailable") ?? total };
      return groups.map(memoryIn).reduce(smaller, machine);
    },
    /** What a process holds and the system cannot take back: not the pages of its files. Null if unknown, as of one that is ending. */
    held: (pid: number): number | null => {
      const status = read(`proc/${pid}/status`);
      const own = kilobytesOf(status, "RssAnon");
      return own === null ? null : own + (kilobytesOf(status, "RssShmem") ?? 0);
    },
    /** Pages of its files in memory, whole where others have them too: those may end. 0 if unknown. */
    files: (pid: number): number => kilobytesOf(read(`proc/${pid}/status`), "RssFile") ?? 0,
    /** Processes that the system has ended for lack of memory, since it was started. */
    kills: (): number => Number(/^oom_kill (\d+)$/m.exec(read("proc/vmstat"))?.[1] ?? 0),
  };
}

/** The cgroups that limit this process, with those above them. In a container its own is mounted as the topmost. */
function groupsOf(root: string, text: string): Group[] {
  const found = text.split("\n").flatMap((line) => {
    const [number, controllers = "", ...rest] = line.split(":");
    const path = rest.join(":");
    if (number === "0") return foldersFrom("sys/fs/cgroup", path).map((folder) => groupOfVersion2(join(root, folder)));
    if (!controllers.split(",").includes("memory")) return [];
    return foldersFrom("sys/fs/cgroup/memory", path).map((folder) => groupOfVersion1(join(root, folder)));
  });
  return found.filter(({ limit }) => existsSync(limit));
}

function groupOfVersion1(folder: string): Group {
  return {
    limit: join(folder, "memory.limit_in_bytes"),
    used: join(folder, "memory.usage_in_bytes"),
    stat: join(folder, "memory.stat"),
    cache: /^total_(?:active|inactive)_file (\d+)$/gm,
  };
}

function groupOfVersion2(folder: string): Group {
  return {
    limit: join(folder, "memory.max"),
    used: join(folder, "memory.current"),
    stat: join(folder, "memory.stat"),
    cache: /^(?:active|inactive)_file (\d+)$/gm,
  };
}

/** The innermost first. */
function foldersFrom(top: string, path: string): string[] {
  const names = path.split("/").filter((name) => name !== "" && name !== "..");
  return [...names.map((_name, index) => join(top, ...names.slice(0, names.length - index))), top];
}

function memoryIn({ limit, used, stat, cache }: Group): DeviceMemory {
  const total = Number(readIfThere(limit));
  // `max`, or a cgroup that is gone: no limit.
  if (!(total > 0)) return { total: Number.POSITIVE_INFINITY, free: Number.POSITIVE_INFINITY };
  const files = [...readIfThere(stat).matchAll(cache)].reduce((sum, [, bytes]) => sum + Number(bytes), 0);
  return { total, free: Math.max(0, total - Number(readIfThere(used)) + files) };
}

function smaller(a: DeviceMemory, b: DeviceMemory): DeviceMemory {
  return { total: Math.min(a.total, b.total), free: Math.min(a.free, b.free) };
}

function kilobytesOf(text: string, name: string): number | null {
  const found = new RegExp(`^${name}:\\s*(\\d+) kB$`, "m").exec(text)?.[1];
  return found === undefined ? null : 1024 * Number(found);
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    // Not Linux, or it has ended.
    if (["ENOENT", "ENOTDIR", "ESRCH"].includes(systemCode(error) ?? "")) return "";
    throw error;
  }
}
