// `validate FILE`: every problem as FILE:LINE:COLUMN, as editors and CI read it.
import { GatewayError, systemCode } from "../core/errors.ts";
import { parseBytes } from "../desired/document/parse.ts";
import type { CommandLine } from "../settings/settings.ts";
import { readBytesIfPresent } from "../state/atomic-file.ts";

export async function validateCommand({ operands, settings }: CommandLine): Promise<number> {
  const [path = ""] = operands;
  const bytes = await readBytesIfPresent(path).catch((error: unknown) => {
    throw new GatewayError("invalid_request", `${path} cannot be read (${systemCode(error) ?? String(error)})`, {
      cause: error,
    });
  });
  if (bytes === null) throw new GatewayError("invalid_request", `there is no ${path}`);
  const parsed = parseBytes(bytes, settings.presetAllow);
  if (parsed.ok) {
    console.log(`${path} is valid`);
    return 0;
  }
  for (const { line, column, path: key, message } of parsed.problems)
    console.error(`${path}:${line}:${column}: ${key ? `${key}: ` : ""}${message}`);
  if (parsed.more > 0) console.error(`${path}: and ${parsed.more} more problems`);
  return 1;
}
