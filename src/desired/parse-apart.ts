// Parses gateway.yaml in a thread, as the event loop serves requests: a file at the limits takes 0.1 to 0.3 s.
// A small file is parsed here, faster than a thread starts.
import { Worker } from "node:worker_threads";
import type { PresetAllow } from "../core/preset-keys.ts";
import { clip } from "./document/bounds.ts";
import { type Parsed, parseBytes } from "./document/parse.ts";

/** Bytes that take 5 ms. */
const smallText = 8 * 1024;

export function parseApart(bytes: Buffer, presetAllow: PresetAllow): Promise<Parsed> {
  if (bytes.length <= smallText) return Promise.resolve(parseBytes(bytes, presetAllow));
  return new Promise((resolve) => {
    const thread = new Worker(new URL("./parse-worker.js", import.meta.url), {
      workerData: { bytes, presetAllow },
      name: "parse",
    });
    thread.once("message", resolve);
    thread.once("error", ({ message }) =>
      resolve({ ok: false, problems: [{ line: 1, column: 1, path: "", message: clip(message) }], more: 0 }),
    );
  });
}
