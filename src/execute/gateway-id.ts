// gateway.id: tells this state folder's gateway from others that share its model cache.
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { readIfPresent, writeState } from "../desired/atomic-file.ts";

/** Sixteen hexadecimal digits, made at the first start. Errors: `disk_full`, `state_unwritable`. */
export async function openGatewayId(stateDir: string): Promise<string> {
  const path = join(stateDir, "gateway.id");
  const known = /^([0-9a-f]{16})\n?$/.exec((await readIfPresent(path)) ?? "")?.[1];
  if (known !== undefined) return known;
  const id = randomBytes(8).toString("hex");
  await writeState(path, `${id}\n`);
  return id;
}
