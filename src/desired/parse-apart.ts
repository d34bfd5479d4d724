// Parses gateway.yaml beside the event loop, which serves requests meanwhile: the largest file takes 100 ms, one that is meant
// to be slow 2 s. A small one is not worth a thread's start.
import { Worker } from "node:worker_threads";
import { clip } from "./bounds.ts";
import { type Parsed, parseSource } from "./parse.ts";

/** Characters that take 5 ms. */
const smallText = 8 * 1024;

export function parseApart(text: string): Promise<Parsed> {
  if (text.length <= smallText) return Promise.resolve(parseSource(text));
  return new Promise((resolve) => {
    const thread = new Worker(new URL("./parse-worker.js", import.meta.url), { workerData: text, name: "parse" });
    thread.once("message", resolve);
    thread.once("error", ({ message }) =>
      resolve({ ok: false, problems: [{ line: 1, column: 1, path: "", message: clip(message) }], more: 0 }),
    );
  });
}
