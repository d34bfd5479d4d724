// How far a process has come with computing: of a model what it says of its slots, and how long its main thread has run; of a
// speech engine how long its other threads have. Seen: while one of its RPC workers hangs, a model's process still answers for
// its health and its slots, and nothing of this moves; and sherpa-onnx that lost a piece still answers for its voice.
import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import type { Agent } from "undici";
import { readAtMost } from "../core/read-at-most.ts";
import type { Instance } from "./instances.ts";

const answerMs = 5_000;
/** Slots may hold whole prompts. */
const maxSlotsBytes = 16 << 20;

/**
 * A text that is another one with every step; null: that cannot be known. The slots alone are too coarse: a prompt moves them
 * once per batch of 2048 tokens, the thread with every message to a worker.
 */
export async function readProgress(agent: Agent, instance: Instance): Promise<string | null> {
  const [slots, ran] = await Promise.all([readSlots(agent, instance), readRunTime(instance.pid)]);
  return slots === null && ran === null ? null : `${slots} ${ran}`;
}

async function readSlots(agent: Agent, { origin, key }: Instance): Promise<string | null> {
  try {
    const { statusCode, body } = await agent.request({
      origin,
      path: "/slots",
      method: "GET",
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

/** Linux: time on a processor, time in the line for one, and turns; the main thread is the one that computes. */
async function readRunTime(pid: number | null, thread: number | string | null = pid): Promise<string | null> {
  if (pid === null) return null;
  const line = await readFile(`/proc/${pid}/task/${thread}/schedstat`, "utf8").catch(() => "0");
  // A kernel that does not count says 0 of everybody.
  return line.startsWith("0") ? null : line.trim();
}

/**
 * The same for a process whose main thread answers questions about it while others compute. What such a question starts, a
 * thread of its own in Python, has gone by the next look, and does not count.
 */
export function threadProgress(pid: number | null): () => Promise<string | null> {
  let before: ReadonlyMap<string, string> = new Map();
  let steps = 0;
  return async () => {
    const threads = await readdir(`/proc/${pid}/task`).catch(() => []);
    const now = new Map<string, string>();
    for (const thread of threads.filter((name) => name !== String(pid))) {
      const ran = await readRunTime(pid, thread);
      if (ran !== null) now.set(thread, ran);
    }
    if ([...now].some(([thread, ran]) => before.has(thread) && before.get(thread) !== ran)) steps++;
    before = now;
    return now.size === 0 ? null : String(steps);
  };
}
