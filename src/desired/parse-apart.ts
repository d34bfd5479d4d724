// Parses the text of a gateway.yaml: in a thread, if it is large.
import { createHash } from "node:crypto";
import { Worker } from "node:worker_threads";
import type { PresetAllow } from "../core/preset-keys.ts";
import type { DocumentTree } from "./document/document.ts";
import { editText } from "./document/edit-text.ts";
import { failed, type Parsed, parseBytes, requireValid } from "./document/parse.ts";
import type { ParseJob } from "./parse-worker.ts";
import type { FileText } from "./saved.ts";

/** Bytes that take 5 ms. */
const smallText = 8 * 1024;

/** In a thread, as a file at the limits takes 0.1 to 0.3 s; a small one here, faster than a thread starts. */
export function parseApart(bytes: Buffer, presetAllow: PresetAllow): Promise<Parsed> {
  if (bytes.length <= smallText) return Promise.resolve(parseBytes(bytes, presetAllow));
  return inThread<Parsed>({ bytes, presetAllow }, ({ message }) => failed(message));
}

/** The text as the tree has it; null where it cannot be had. An edit parses it some times. */
export function editApart(bytes: Buffer, tree: DocumentTree, presetAllow: PresetAllow): Promise<string | null> {
  if (bytes.length <= smallText / 4) return Promise.resolve(editText(bytes.toString("utf8"), tree, presetAllow));
  return inThread<string | null>({ bytes, presetAllow, tree }, () => null);
}

function inThread<T>(workerData: ParseJob, onError: (error: Error) => T): Promise<T> {
  return new Promise((resolve) => {
    const thread = new Worker(new URL("./parse-worker.js", import.meta.url), { workerData, name: "parse" });
    thread.once("message", resolve);
    thread.once("error", (error) => resolve(onError(error)));
  });
}

export function hashOfText(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** Of a call. Errors: as {@link requireValid}. */
export async function readText(bytes: Buffer, presetAllow: PresetAllow): Promise<FileText> {
  return { tree: requireValid(await parseApart(bytes, presetAllow)), sha256: hashOfText(bytes) };
}
