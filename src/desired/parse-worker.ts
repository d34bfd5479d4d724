// A thread that parses one gateway.yaml, or edits its text.
import { parentPort, workerData } from "node:worker_threads";
import type { PresetAllow } from "../core/preset-keys.ts";
import type { DocumentTree } from "./document/document.ts";
import { editText } from "./document/edit-text.ts";
import { parseBytes } from "./document/parse.ts";

/** What is to be done with the bytes; a tree is what they shall say. */
export interface ParseJob {
  readonly bytes: Uint8Array;
  readonly presetAllow: PresetAllow;
  readonly tree?: DocumentTree;
}

// parse-apart.ts is the only one that starts this thread.
const { bytes, presetAllow, tree } = workerData as ParseJob;
const text = Buffer.from(bytes);
parentPort?.postMessage(tree ? editText(text.toString("utf8"), tree, presetAllow) : parseBytes(text, presetAllow));
