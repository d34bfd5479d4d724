// The model cards of voices on the disk, which lie beside them: under which license each is. They are written by hand by the
// authors of the voices.
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

/** The official cards have some hundreds of characters; the rest of a longer one is not read. */
const cardLimit = 64 * 1024;
const ending = ".MODEL_CARD";

/** The licenses of voices on the disk whose cards name one, by voice. */
export async function keptLicenses(voicesDir: string): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const name of await readdir(voicesDir).catch(() => [])) {
    if (!name.endsWith(ending)) continue;
    const card = await readFile(join(voicesDir, name), "utf8").catch(() => "");
    const license = licenseOf(card.slice(0, cardLimit));
    if (license !== null) found.set(name.slice(0, -ending.length).normalize("NFC"), license);
  }
  return found;
}

const lineLimit = 300;

/**
 * One line, as the card has it (`CC BY 4.0`, an address); null if there is none. Seen: a `* License:` line, which may only
 * be `See URL`, of the line above it; a `## License` heading with a sentence below.
 */
export function licenseOf(card: string): string | null {
  const said = /^[ \t]*(?:[*-][ \t]+)?licen[cs]e[ \t]*:(.*)$/im.exec(card)?.[1] ?? headed(card) ?? "";
  const license = oneLine(said);
  if (license === "") return null;
  if (!/^see (?:the )?url\b/i.test(license)) return license;
  const url = oneLine(/^[ \t]*(?:[*-][ \t]+)?url[ \t]*:(.*)$/im.exec(card)?.[1] ?? "");
  return url === "" ? license : `see ${url}`;
}

function headed(card: string): string | undefined {
  return /^#+[ \t]*licen[cs]e[ \t]*\r?\n\s*([^\s#].*)$/im.exec(card)?.[1];
}

/** For terminals: control characters are removed. */
function oneLine(text: string): string {
  return text
    .replace(/[\p{C}\s]+/gu, " ")
    .trim()
    .slice(0, lineLimit);
}
