// The text of a gateway.yaml that a call sends.
import { createHash } from "node:crypto";
import { GatewayError } from "../core/errors.ts";
import type { PresetAllow } from "../core/preset-keys.ts";
import { parseBytes } from "./document/parse.ts";
import type { FileText } from "./saved.ts";

export function hashOfText(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** Errors: `invalid_document` with line, column and field of every problem. */
export function readText(bytes: Buffer, presetAllow: PresetAllow): FileText {
  const parsed = parseBytes(bytes, presetAllow);
  if (parsed.ok) return { tree: parsed.tree, sha256: hashOfText(bytes) };
  const problems = parsed.problems.map(
    ({ line, column, path, message }) => `line ${line}, column ${column}: ${path === "" ? "" : `${path}: `}${message}`,
  );
  if (parsed.more > 0) problems.push(`and ${parsed.more} more`);
  throw new GatewayError("invalid_document", problems.join("; "));
}
