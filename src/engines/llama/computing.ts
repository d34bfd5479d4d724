// The compute progress of an instance: its slots, and the run time of its main thread. Seen: while one of its RPC workers hangs,
// it still answers health checks and slots, and neither of the two changes.
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { readAtMost } from "../../core/read-at-most.ts";
import { request } from "../../undici.ts";
import type { Instance } from "./instances.ts";

type Computing = Pick<Instance, "origin" | "key" | "pid">;

const answerMs = 5_000;
/** Slots may hold whole prompts. */
const maxSlotsBytes = 16 << 20;

/** A text that changes with every step; null: unknown. Slots alone are too coarse: a prompt changes them once per 2048 tokens. */
export async function readProgress(instance: Computing): Promise<string | null> {
  const [slots, ran] = await Promise.all([readSlots(instance), readRunTime(instance.pid)]);
  return slots === null && ran === null ? null : `${slots} ${ran}`;
}

async function readSlots({ origin, key }: Computing): Promise<string | null> {
  try {
    const { statusCode, body } = await request(`${origin}/slots`, {
      headers: { authorization: `Bearer ${key}` },
      reset: true,
      signal: AbortSignal.timeout(answerMs),
    });
    const text = await readAtMost(body, maxSlotsBytes, () => new Error("too long"));
    return statusCode === 200 ? createHash("sha1").update(text).digest("base64") : null;
  } catch {
    return null;
  }
}

/** Linux: time on a processor, time in its run queue, and time slices; the main thread computes. */
async function readRunTime(pid: number | null): Promise<string | null> {
  if (pid === null) return null;
  const line = await readFile(`/proc/${pid}/task/${pid}/schedstat`, "utf8").catch(() => "0");
  // A kernel without these counters has 0 for every process.
  return line.startsWith("0") ? null : line.trim();
}
