// The license in a voice's model card. Cards are written by hand by the authors of the voices. Pure.

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
