// The lines of a text that an edit has changed, in place of the same lines of a text that is formatted in another way. Pure.

/** Pairs of lines that are compared at most; 2,000 lines that all differ take 20 ms. */
const mostPairs = 4_000_000;

/**
 * `before` and `after` are formatted by a program, `text` by a person, with the same words as `before`. What is the same in both of them
 * stays as the person has it. Null where the words differ, or the texts are too long.
 */
export function patchLines(text: string, before: string, after: string): string | null {
  const [own, from, to] = [text, before, after].map((each) => each.trimEnd().split("\n")) as [
    string[],
    string[],
    string[],
  ];
  const groups = alignedGroups(own, from);
  const kept = groups && commonLines(from, to);
  if (!kept) return null;
  const lines: string[] = [];
  for (let at = 0; at < to.length; ) {
    const group = groups.get(kept.get(at) ?? -1);
    const isWhole = group?.from.every((line, offset) => kept.get(at + offset) === line) ?? false;
    if (group && isWhole) lines.push(...group.own);
    else lines.push(to[at] as string);
    at += group && isWhole ? group.from.length : 1;
  }
  return `${lines.join("\n")}\n`;
}

interface Group {
  readonly own: readonly string[];
  /** Indexes of the program's lines. */
  readonly from: number[];
}

/** The fewest lines of both that hold the same words, by the first of the program's lines: it moves a comment to a line of its own. */
function alignedGroups(own: readonly string[], from: readonly string[]): ReadonlyMap<number, Group> | null {
  const [ownEnds, fromEnds] = [wordEnds(own), wordEnds(from)];
  if (ownEnds.words !== fromEnds.words) return null;
  const lastOwn = new Map(ownEnds.ends.map((end, index) => [end, index]));
  const groups = new Map<number, Group>();
  let [start, first] = [0, 0];
  for (const [index, end] of fromEnds.ends.entries()) {
    const last = lastOwn.get(end);
    if (last === undefined || fromEnds.ends[index + 1] === end) continue;
    const upTo = last + 1;
    const lines = Array.from({ length: index + 1 - first }, (_, offset) => first + offset);
    groups.set(first, { own: own.slice(start, upTo), from: lines });
    [start, first] = [upTo, index + 1];
  }
  return groups;
}

/** The text without white space, and where each line ends in it. */
function wordEnds(lines: readonly string[]): { readonly words: string; readonly ends: readonly number[] } {
  let words = "";
  const ends = lines.map((line) => (words += line.replaceAll(/\s/g, "")).length);
  return { words, ends };
}

/** By the index of a line in `to` that of the same line in `from`: the longest common sequence. Null where they are too long. */
function commonLines(from: readonly string[], to: readonly string[]): ReadonlyMap<number, number> | null {
  const kept = new Map<number, number>();
  let start = 0;
  while (start < from.length && start < to.length && from[start] === to[start]) kept.set(start, start++);
  let [a, b] = [from.length, to.length];
  while (a > start && b > start && from[a - 1] === to[b - 1]) kept.set(--b, --a);
  const width = b - start + 1;
  if ((a - start + 1) * width > mostPairs) return null;
  // lengths[i * width + j]: of the longest sequence that lines from i and from j on have in common.
  const lengths = new Uint16Array((a - start + 1) * width);
  for (let i = a - start - 1; i >= 0; i--)
    for (let j = b - start - 1; j >= 0; j--)
      lengths[i * width + j] =
        from[start + i] === to[start + j]
          ? (lengths[(i + 1) * width + j + 1] ?? 0) + 1
          : Math.max(lengths[(i + 1) * width + j] ?? 0, lengths[i * width + j + 1] ?? 0);
  for (let i = 0, j = 0; i < a - start && j < b - start; ) {
    if (from[start + i] === to[start + j]) kept.set(start + j++, start + i++);
    else if ((lengths[(i + 1) * width + j] ?? 0) >= (lengths[i * width + j + 1] ?? 0)) i++;
    else j++;
  }
  return kept;
}
