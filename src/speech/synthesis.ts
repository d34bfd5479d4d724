// A text of any length spoken piece by piece, with pauses between the pieces. The speaking function is an argument. Pure.
import type { Piece } from "./text.ts";
import { type Pcm, requireSameFormat, silence } from "./wav.ts";

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
