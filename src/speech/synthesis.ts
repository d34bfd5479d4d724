// A text of any length spoken piece by piece: cut, sent to whatever speaks, joined with pauses and without clicks.
// Knows no server and no wire: a speaker comes in, bytes of a WAV file go out.
import { GatewayError } from "../core/errors.ts";
import type { PieceRequest, PieceSpeaker } from "./piper-http.ts";
import { type Piece, speechPieces } from "./text.ts";
import { type Pcm, requireSameFormat, sampleBytes, silence, softenEdges, wavFile, wavHeader } from "./wav.ts";

export interface SpeechRequest extends Omit<PieceRequest, "text"> {
  /** As the client sent it. */
  readonly text: string;
}

/** Milliseconds of silence after a piece. Between words of a sentence that had to be cut there is none. */
const pauseMs: Readonly<Record<Piece["ends"], number>> = { sentence: 250, clause: 100, word: 0 };

/** The whole file, with a header that tells its length. Throws like {@link speechStream}. */
export async function speechFile(
  speaker: PieceSpeaker,
  wanted: SpeechRequest,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const parts: Pcm[] = [];
  for await (const part of spokenParts(speaker, wanted, signal)) parts.push(part);
  return wavFile(parts);
}

/**
 * The file as it comes into being: a header for an unknown length together with the first piece, then piece by piece. What
 * goes wrong before the first piece is there comes as an error before any byte. Throws `invalid_request` where there is
 * nothing to say, `upstream_failed`, `cancelled`.
 */
export async function* speechStream(
  speaker: PieceSpeaker,
  wanted: SpeechRequest,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  let begun = false;
  for await (const part of spokenParts(speaker, wanted, signal)) {
    if (!begun) yield wavHeader(part, null);
    begun = true;
    yield sampleBytes(part.samples);
  }
}

async function* spokenParts(speaker: PieceSpeaker, wanted: SpeechRequest, signal: AbortSignal): AsyncGenerator<Pcm> {
  const pieces = speechPieces(wanted.text);
  if (pieces.length === 0) throw new GatewayError("invalid_request", "`input` has nothing in it that can be spoken");
  // A reader who stops in the middle ends what was begun for him.
  const stopped = new AbortController();
  const ending = AbortSignal.any([signal, stopped.signal]);
  const begin = (piece: Piece | undefined): Promise<Pcm> | null => {
    if (!piece) return null;
    const work = speaker.speak({ ...wanted, text: piece.text }, ending);
    // It is looked at later: until then its failure is nobody's.
    work.catch(() => undefined);
    return work;
  };
  let first: Pcm | null = null;
  let next = begin(pieces[0]);
  try {
    for (const [index, piece] of pieces.entries()) {
      const current = await next;
      if (!current) break;
      first ??= current;
      requireSameFormat(first, current);
      // While this one is sent, the next one is made.
      next = begin(pieces[index + 1]);
      yield softenEdges(current);
      const pause = index === pieces.length - 1 ? 0 : pauseMs[piece.ends];
      if (pause > 0) yield silence(current, pause);
    }
  } finally {
    stopped.abort();
  }
}
