// When a gateway that was started here is ready.
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";

/** It says so itself: a question every 2 ms took a quarter of a start, as the answers to early ones are not compiled yet. */
export async function untilReady(output: Readable): Promise<void> {
  for await (const line of createInterface(output)) if (line.includes('"msg":"Ready. ')) return void output.resume();
  throw new Error("the gateway ended before it was ready");
}
