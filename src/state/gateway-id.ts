// gateway.id: distinguishes this state folder's gateway from others that share its model cache.
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { readIfPresent } from "./atomic-file.ts";
import type { StateFiles } from "./state-folder.ts";

/** Sixteen hexadecimal digits, made at the first start. */
export async function openGatewayId(stateDir: string, files: Pick<StateFiles, "write">): Promise<string> {
  const path = join(stateDir, "gateway.id");
  const known = /^([0-9a-f]{16})\n?$/.exec((await readIfPresent(path)) ?? "")?.[1];
  if (known !== undefined) return known;
  const id = randomBytes(8).toString("hex");
  // A disk that refuses it is reported by the folder; the next start makes another one.
  await files.write(path, `${id}\n`).catch(() => undefined);
  return id;
}
