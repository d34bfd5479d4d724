// The error of a call that would change what only gateway.yaml changes: with the field, and its line in the file.
import { GatewayError } from "../core/errors.ts";
import { readIfPresent } from "../state/atomic-file.ts";
import { lineOf } from "./document/line-of.ts";
import { formatPath } from "./document/validate.ts";

export function managedBy(configPath: string): (path: readonly string[]) => Promise<GatewayError> {
  return async (path) => {
    const text = await readIfPresent(configPath).catch(() => null);
    const found = text === null ? null : lineOf(text, path);
    const where = found === null ? configPath : `${configPath}:${found.line}`;
    const how = found?.isWhole === true ? "is set in" : "is left to";
    const field = formatPath(path);
    return new GatewayError("file_managed", `${field} ${how} ${where}, and only the file changes the document`, {
      param: field,
    });
  };
}
