// Long messages on a terminal: broken between words, as a terminal breaks them anywhere. Pure.

/** Lines of at most so many columns, but for longer words; further lines are indented. Without columns: as it is. */
export function wrapped(text: string, columns: number | undefined, indent = ""): string {
  if (columns === undefined || columns <= indent.length) return text;
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > columns) {
      lines.push(line);
      line = `${indent}${word}`;
    } else line += line === "" ? word : ` ${word}`;
  }
  return [...lines, line].join("\n");
}
