// The model cards of voices on the disk, which lie beside them: under which license each is.
import { constants } from "node:fs";
import { open, readdir } from "node:fs/promises";
import { join } from "node:path";
import { licenseOf } from "../speech/model-card.ts";

/** The official cards have some hundreds of characters; the rest of a longer one is not read. */
const cardLimit = 64 * 1024;
const ending = ".MODEL_CARD";

/** The licenses of voices on the disk whose cards name one, by voice. */
export async function keptLicenses(voicesDir: string): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const name of await readdir(voicesDir).catch(() => [])) {
    if (!name.endsWith(ending)) continue;
    const license = licenseOf((await readCard(join(voicesDir, name))) ?? "");
    if (license !== null) found.set(name.slice(0, -ending.length).normalize("NFC"), license);
  }
  return found;
}

async function readCard(path: string): Promise<string | null> {
  // A read of a pipe without a writer never ends.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch(() => null);
  if (!file) return null;
  try {
    if (!(await file.stat()).isFile()) return null;
    const { bytesRead, buffer } = await file.read({ buffer: Buffer.alloc(cardLimit) });
    return buffer.toString("utf8", 0, bytesRead);
  } catch {
    return null;
  } finally {
    await file.close();
  }
}
