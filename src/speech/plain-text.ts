// Text as it is written, made into text as it is read aloud: no markup, and pauses where a reader makes them.
// Pure. Every step takes time in proportion to the text, whatever the text is: it comes from outside.

/**
 * For Piper only `. ? ! , : ;` end a clause. At a blank line, an ellipsis or a `。` it leaves out the pause and
 * the space too, so that two words become one; and it reads markup aloud (`asterisk asterisk bold`).
 */
export function plainText(text: string): string {
  return [wellFormed, linesToSentences, withoutInlineMarkup, withoutPhonemeMarks, plainPunctuation].reduce(
    (current, step) => step(current),
    text,
  );
}

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
