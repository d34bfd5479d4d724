// Cuts a text into the pieces that a speech engine gets one by one, and joins their sounds. Pure.
// One long piece is dangerous: 2,000 words without a full stop took 24 GB in Piper.
import { plainText } from "./plain-text.ts";
import { reach } from "./sounds.ts";
import { type Pcm, requireSameFormat, silence } from "./wav.ts";

export interface Piece {
  readonly text: string;
  /** What comes after it: the pause depends on it. */
  readonly ends: "sentence" | "clause" | "word";
}

/** As many sounds as so many letters of ordinary words have, see {@link reach}: a piece has no more. */
export const pieceLimit = 350;

/** The pieces of a text, in order; none for a text in which there is nothing to say. */
export function speechPieces(text: string, limit: number = pieceLimit): Piece[] {
  const pieces = sentencesOf(plainText(text)).flatMap((sentence) => cut(sentence, limit));
  // Piper answers a text that has no sound (`...`, `—`) with an error.
  return pieces.filter((piece) => /[\p{L}\p{N}\p{Sc}%&+=@]/u.test(piece.text));
}

/** At `.`, `?` or `!` with a space after it, but not after an initial, a common short form or `3.`: those go on. */
function sentencesOf(text: string): string[] {
  const sentences: string[] = [];
  let start = 0;
  for (const match of text.matchAll(/[.!?]["'”’»)\]]{0,3} /g)) {
    const end = match.index + match[0].length;
    const before = text.slice(Math.max(start, match.index - 12), match.index + 1);
    if (goesOn.test(before)) continue;
    sentences.push(text.slice(start, end).trim());
    start = end;
  }
  return [...sentences, text.slice(start).trim()];
}

const goesOn =
  /(?:^|[\s("'„“])(?:\p{Lu}|\d{1,2}|Mr|Mrs|Ms|Dr|Prof|St|Sr|Jr|Nr|No|vs|etc|ca|bzw|evtl|p|S|e\.g|i\.e|z\.B|z\. B|d\.h|u\.a|a\.m|p\.m)\.$/u;

function cut(sentence: string, limit: number): Piece[] {
  const pieces: Piece[] = [];
  let rest = sentence;
  for (let end = reach(rest, limit); end < rest.length; end = reach(rest, limit)) {
    const { at, ends } = cutPlace(rest, end);
    pieces.push({ text: rest.slice(0, at).trim(), ends });
    rest = rest.slice(at).trim();
  }
  if (rest !== "") pieces.push({ text: rest, ends: "sentence" });
  return pieces;
}

/** After the last comma of the larger part up to the end, else before the last space, else between two characters. */
function cutPlace(text: string, end: number): { at: number; ends: Piece["ends"] } {
  const window = text.slice(0, end);
  const earliest = Math.floor(end / 3);
  const comma = Math.max(...[", ", "; ", ": ", "— ", "– ", ") "].map((mark) => window.lastIndexOf(mark)));
  if (comma >= earliest) return { at: comma + 1, ends: "clause" };
  const space = window.lastIndexOf(" ");
  if (space >= 1) return { at: space, ends: "word" };
  return { at: end, ends: "word" };
}

/** Milliseconds of silence after a piece. Between words of a sentence that had to be cut there is none. */
const pauseMs: Readonly<Record<Piece["ends"], number>> = { sentence: 250, clause: 100, word: 0 };

/** A piece is requested once the sound before it is consumed, so after a disconnect at most one more is made. */
export async function* spokenParts(
  pieces: readonly Piece[],
  speak: (text: string) => Promise<Pcm>,
): AsyncGenerator<Pcm, void> {
  let first: Pcm | null = null;
  for (const [index, { text, ends }] of pieces.entries()) {
    const sound = await speak(text);
    first ??= sound;
    requireSameFormat(first, sound);
    yield sound;
    if (index < pieces.length - 1 && pauseMs[ends] > 0) yield silence(sound, pauseMs[ends]);
  }
}
