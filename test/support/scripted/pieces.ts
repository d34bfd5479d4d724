// Cuts texts into vocabulary pieces of which none stands twice. Pure.
// Why: all scripts of a model share one table "after this piece comes that one", so a piece met twice would branch,
// and an engine refuses a vocabulary that has a text twice.

/** Cuts are tried until this many pieces have been looked at; texts that need more are refused rather than searched for ever. */
const searchBudget = 200_000;
const longestPiece = 400;

/**
 * Texts cut into pieces, each piece unused so far; a later text that repeats a word gets it joined with the next
 * or cut elsewhere. Concatenated, the pieces are the text.
 * @param taken texts that may not be used again; the pieces found are added to it.
 * @throws RangeError where no such cut is found.
 */
export function cutIntoPieces(text: string, taken: Set<string>): string[] {
  const symbols = Array.from(text);
  const wordEnds = findWordEnds(symbols);
  const ends: number[] = [];
  let looked = 0;

  interface Level {
    readonly start: number;
    readonly candidates: Iterator<number>;
    piece: string | null;
  }
  const levels: Level[] = [{ start: 0, candidates: candidateEnds(0, symbols.length, wordEnds), piece: null }];

  // A stack of its own and not recursion: a text of some thousand words would be as many calls deep.
  while (true) {
    const level = levels.at(-1);
    if (!level) throw new RangeError(`no way to cut into pieces that stand once: ${quoted(text)}`);
    if (level.piece !== null) {
      taken.delete(level.piece);
      level.piece = null;
      ends.pop();
    }
    const next = level.candidates.next();
    if (next.done) {
      levels.pop();
      continue;
    }
    looked += 1;
    if (looked > searchBudget)
      throw new RangeError(`too repetitive to cut into pieces that stand once: ${quoted(text)}`);
    const piece = symbols.slice(level.start, next.value).join("");
    if (taken.has(piece)) continue;
    taken.add(piece);
    level.piece = piece;
    ends.push(next.value);
    if (next.value === symbols.length) return levels.map(({ piece: found }) => found ?? "");
    levels.push({
      start: next.value,
      candidates: candidateEnds(next.value, symbols.length, wordEnds),
      piece: null,
    });
  }
}

/** Where a piece that begins at `start` may end, best first: after a word, after more words, inside the first word. */
function* candidateEnds(start: number, length: number, wordEnds: readonly number[]): Generator<number, void> {
  const firstWordEnd = wordEnds[start] ?? length;
  let end = firstWordEnd;
  while (end - start <= longestPiece) {
    yield end;
    if (end >= length) break;
    end = wordEnds[end] ?? length;
  }
  for (let inside = firstWordEnd - 1; inside > start; inside -= 1) yield inside;
}

/** For each position, where the word ends that begins there (its leading blanks belong to it). */
function findWordEnds(symbols: readonly string[]): number[] {
  const wordEnds = symbols.map(() => symbols.length);
  for (let at = symbols.length - 2; at >= 0; at -= 1) {
    const startsNext = isBlank(symbols[at + 1]) && !isBlank(symbols[at]);
    wordEnds[at] = startsNext ? at + 1 : (wordEnds[at + 1] ?? symbols.length);
  }
  return wordEnds;
}

function isBlank(symbol: string | undefined): boolean {
  return symbol === " " || symbol === "\n";
}

function quoted(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}
