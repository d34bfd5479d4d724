// Which known word a misspelt one was meant to be. Pure.

/** Longer words are compared with none: the cost of a comparison grows with the product of both lengths. */
const longest = 64;

/** The known word that is the fewest edits away, apart from case, dashes and underscores; null where none is near. */
export function nearMatch(word: string, known: Iterable<string>): string | null {
  if (word.length > longest) return null;
  const folded = fold(word);
  let best: string | null = null;
  // A third of its letters may be wrong, and none of three.
  let fewest = Math.floor(folded.length / 3) + (folded.length > 3 ? 1 : 0);
  for (const each of known) {
    const other = fold(each);
    if (Math.abs(other.length - folded.length) >= fewest && other !== folded) continue;
    const edits = editDistance(folded, other);
    if (edits >= fewest && edits > 0) continue;
    best = each;
    fewest = edits;
    if (edits === 0) break;
  }
  return best;
}

function fold(word: string): string {
  return word.toLowerCase().replaceAll(/[-_]/g, "");
}

/** Letters to insert, delete or replace, or to swap with the next one. */
function editDistance(from: string, to: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let row = 1; row <= from.length; row++) {
    const next = [row];
    for (let column = 1; column <= to.length; column++) {
      const isSame = from[row - 1] === to[column - 1];
      const isSwapped = row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      next[column] = Math.min(
        (last[column] ?? 0) + 1,
        (next[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (isSame ? 0 : 1),
        isSwapped ? (beforeLast[column - 2] ?? 0) + 1 : Infinity,
      );
    }
    beforeLast = last;
    last = next;
  }
  return last[to.length] ?? 0;
}
