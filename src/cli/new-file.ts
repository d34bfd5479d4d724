// A file that a command writes for a person: never over another one.
import { writeFile } from "node:fs/promises";
import { GatewayError, reasonOf } from "../core/errors.ts";

/** Errors: `invalid_request` for one that is there, or cannot be written. */
export async function writeNew(file: string, content: string | Uint8Array, mode = 0o666): Promise<void> {
  try {
    await writeFile(file, content, { flag: "wx", mode });
  } catch (error) {
    throw new GatewayError("invalid_request", `${file} cannot be written (${reasonOf(error)}): name another`, {
      cause: error,
    });
  }
}
