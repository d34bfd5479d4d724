// Text as it is written, made into text as it is read aloud: no markup, and pauses where a reader makes them.
// Pure. Every step takes time in proportion to the text, whatever the text is: it comes from outside.

/**
 * Piper knows only `. ? ! , : ;` as ends of a clause. At a blank line, an ellipsis or a `。` it leaves out the pause and
 * the space too, so that two words become one; and it reads markup aloud (`asterisk asterisk bold`).
 */
export function plainText(text: string): string {
  return [wellFormed, withoutHtml, linesToSentences, withoutInlineMarkup, withoutPhonemeMarks, plainPunctuation].reduce(
    (current, step) => step(current),
    text,
  );
}

const nameOfEntity: Readonly<Record<string, string>> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  nbsp: " ",
  ndash: "–",
  mdash: "—",
  hellip: "…",
};

function wellFormed(text: string): string {
  return (
    text
      .replaceAll(/\p{Surrogate}/gu, " ")
      .replaceAll(/\r\n?|\u2028|\u0085|\v|\f/g, "\n")
      .replaceAll("\u2029", "\n\n")
      // Of no width, or with no sound; joiners between emoji and letters stay.
      .replaceAll(/[\u00ad\u200b\u2060\ufeff\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "")
      .replaceAll(/[^\P{Cc}\n]/gu, " ")
      .replaceAll(/[^\S\n]+/g, " ")
      .normalize("NFC")
  );
}

function withoutHtml(text: string): string {
  if (!/[<&]/.test(text)) return text;
  let bare = withoutBlocks(text, "<!--", "-->");
  for (const name of ["script", "style"]) bare = withoutBlocks(bare, `<${name}`, `</${name}>`);
  return (
    bare
      .replaceAll(/<(https?:\/\/[^<>\s]{1,2000})>/gi, "$1")
      .replaceAll(
        /<\/?(?:p|div|br|li|ul|ol|tr|table|h[1-6]|section|article|blockquote|pre|hr)\b[^<>]{0,2000}>/gi,
        "\n\n",
      )
      // A letter right after it: `a < b` is no tag.
      .replaceAll(/<\/?[a-z][^<>]{0,2000}>/gi, "")
      .replaceAll(/&(#\d{1,7}|#x[0-9a-f]{1,6}|[a-z]{2,8});/gi, (whole, name: string) => entity(name) ?? whole)
  );
}

function entity(name: string): string | undefined {
  if (!name.startsWith("#")) return nameOfEntity[name.toLowerCase()];
  const code = /^#x/i.test(name) ? Number.parseInt(name.slice(2), 16) : Number(name.slice(1));
  const isCharacter = code >= 0x20 && code <= 0x10_ffff && !(code >= 0xd800 && code <= 0xdfff);
  return isCharacter ? String.fromCodePoint(code) : " ";
}

/** Without what stands between two marks, ignoring case. An expression would search to the end once for each first mark. */
function withoutBlocks(text: string, open: string, close: string): string {
  const folded = text.toLowerCase();
  // A letter that is longer in lower case would shift all that follows.
  if (folded.length !== text.length || !folded.includes(open)) return text;
  let kept = "";
  let at = 0;
  for (;;) {
    const start = folded.indexOf(open, at);
    const end = start < 0 ? -1 : folded.indexOf(close, start + open.length);
    if (end < 0) return kept + text.slice(at);
    kept += `${text.slice(at, start)} `;
    at = end + close.length;
  }
}

/** Headings, list items, table rows and paragraphs end in a pause; a line that was only wrapped goes on. */
function linesToSentences(text: string): string {
  const sentences: string[] = [];
  let current = "";
  const end = (): void => {
    if (current !== "") sentences.push(withEnd(current));
    current = "";
  };
  for (const raw of text.split("\n")) {
    const line = raw.trim();
    if (isLayoutOnly(line)) {
      end();
      continue;
    }
    const unquoted = line.replace(/^(?:>\s?){1,20}/, "");
    const heading = /^#{1,6}\s+(.*)$/.exec(unquoted)?.[1];
    const item = /^(?:[-*+•]|(\d{1,3})[.)])\s+(.*)$/.exec(unquoted);
    const row = /^\|(.*)$/.exec(unquoted)?.[1];
    if (heading !== undefined || item || row !== undefined) end();
    if (heading !== undefined) current = heading.replace(/\s#+$/, "");
    else if (item) current = item[1] === undefined ? (item[2] ?? "") : `${item[1]}, ${item[2]}`;
    else if (row !== undefined)
      current = row
        .replace(/\|$/, "")
        .trim()
        .replaceAll(/\s*\|\s*/g, ", ");
    else current += `${current === "" ? "" : " "}${unquoted}`;
    if (heading !== undefined || row !== undefined) end();
  }
  end();
  return sentences.join(" ");
}

/** Blank, a ruler, the fence of a code block, the line under a table's head. */
function isLayoutOnly(line: string): boolean {
  return /^(?:[-*_=~]\s?){3,}$/.test(line) || /^(?:```|~~~)/.test(line) || /^[|:\-\s]*$/.test(line);
}

function withEnd(sentence: string): string {
  let end = sentence.length;
  while (end > 0 && " \"'”’»)]*_`~".includes(sentence.charAt(end - 1))) end--;
  return ".!?:;,…。！？；：、，．।؟".includes(sentence.charAt(end - 1)) && end > 0 ? sentence : `${sentence}.`;
}

function withoutInlineMarkup(text: string): string {
  return (
    text
      .replaceAll(/!?\[([^[\]]{0,1000})\]\([^()\s]{0,2000}(?:\s"[^"()]{0,200}")?\)/g, "$1")
      .replaceAll("`", "")
      .replaceAll("~~", "")
      // Beside a word on one side only: `2 * 3` and `2*3` are sums.
      .replaceAll(/(?<![\p{L}\p{N}*])\*{1,3}(?=[^\s*])/gu, "")
      .replaceAll(/(?<=[^\s*])\*{1,3}(?![\p{L}\p{N}*])/gu, "")
      .replaceAll(/(?<![\p{L}\p{N}_])_{1,3}(?=[^\s_])/gu, "")
      .replaceAll(/(?<=[^\s_])_{1,3}(?![\p{L}\p{N}_])/gu, "")
  );
}

/** Between double brackets Piper takes sounds as they are. */
function withoutPhonemeMarks(text: string): string {
  return text.replaceAll(/\[{2,}|\]{2,}/g, " ");
}

function plainPunctuation(text: string): string {
  return text
    .replaceAll(/[…‥]|\.{2,}/g, ". ")
    .replaceAll(/[。｡．।॥۔]/g, ". ")
    .replaceAll(/！/g, "! ")
    .replaceAll(/[？؟]/g, "? ")
    .replaceAll(/[、，､،]/g, ", ")
    .replaceAll(/[；؛]/g, "; ")
    .replaceAll(/：/g, ": ")
    .replaceAll(/([!?,;:])\1+/g, "$1")
    .replaceAll(/\s+/g, " ")
    .replaceAll(/ (?=[.,;:!?](?: |$))/g, "")
    .replaceAll(/([.!?])(?: ?\.)+(?= |$)/g, "$1")
    .trim();
}
