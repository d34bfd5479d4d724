// Parses the text of a gateway.yaml: in a thread, if it is large.
import { createHash } from "node:crypto";
import { Worker } from "node:worker_threads";
import { GatewayError } from "../core/errors.ts";
import type { PresetAllow } from "../core/preset-keys.ts";
import { failed, type Parsed, parseBytes } from "./document/parse.ts";
import type { FileText } from "./saved.ts";

/** Bytes that take 5 ms. */
const smallText = 8 * 1024;

/** In a thread, as a file at the limits takes 0.1 to 0.3 s; a small one here, faster than a thread starts. */
export function parseApart(bytes: Buffer, presetAllow: PresetAllow): Promise<Parsed> {
  if (bytes.length <= smallText) return Promise.resolve(parseBytes(bytes, presetAllow));
  return new Promise((resolve) => {
    const thread = new Worker(new URL("./parse-worker.js", import.meta.url), {
      workerData: { bytes, presetAllow },
      name: "parse",
    });
    thread.once("message", resolve);
    thread.once("error", ({ message }) => resolve(failed(message)));
  });
}

export function hashOfText(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** Of a call. Errors: `invalid_document` with line, column and field of every problem. */
export async function readText(bytes: Buffer, presetAllow: PresetAllow): Promise<FileText> {
  const parsed = await parseApart(bytes, presetAllow);
  if (parsed.ok) return { tree: parsed.tree, sha256: hashOfText(bytes) };
  const problems = parsed.problems.map(
    ({ line, column, path, message }) => `line ${line}, column ${column}: ${path === "" ? "" : `${path}: `}${message}`,
  );
  if (parsed.more > 0) problems.push(`and ${parsed.more} more`);
  throw new GatewayError("invalid_document", problems.join("; "));
}
