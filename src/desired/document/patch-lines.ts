// The lines of a text that an edit has changed, in place of the same lines of a text that is formatted in another way. Pure.
import { commonLines } from "../../core/common-lines.ts";

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
  const common = groups && commonLines(from, to);
  if (!common) return null;
  const kept = new Map(common.map(([old, fresh]) => [fresh, old]));
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
