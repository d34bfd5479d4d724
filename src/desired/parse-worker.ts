// A thread that parses one gateway.yaml.
import { parentPort, workerData } from "node:worker_threads";
import type { PresetAllow } from "../core/preset-keys.ts";
import { parseBytes } from "./document/parse.ts";

// parse-apart.ts is the only one that starts this thread.
const { bytes, presetAllow } = workerData as { readonly bytes: Uint8Array; readonly presetAllow: PresetAllow };
parentPort?.postMessage(parseBytes(Buffer.from(bytes), presetAllow));
