// `validate FILE`: every problem as FILE:LINE:COLUMN, as editors and CI read it.
import { GatewayError, systemCode } from "../core/errors.ts";
import { noneAllowed, type PresetAllow } from "../core/preset-keys.ts";
import { readIfPresent } from "../desired/atomic-file.ts";
import { parseSource } from "../desired/parse.ts";

export async function validateCommand(
  [path]: readonly string[],
  presetAllow: PresetAllow = noneAllowed,
): Promise<number> {
  if (path === undefined) throw new GatewayError("invalid_request", "validate needs a file");
  const text = await readIfPresent(path).catch((error: unknown) => {
    throw new GatewayError("invalid_request", `${path} cannot be read (${systemCode(error) ?? String(error)})`, {
      cause: error,
    });
  });
  if (text === null) throw new GatewayError("invalid_request", `there is no ${path}`);
  const parsed = parseSource(text, presetAllow);
  if (parsed.ok) {
    console.log(`${path} is valid`);
    return 0;
  }
  for (const { line, column, path: key, message } of parsed.problems)
    console.error(`${path}:${line}:${column}: ${key ? `${key}: ` : ""}${message}`);
  return 1;
}
