// A text's way to sound: a short one as one file with its length, a long one sent while it is being made.
import { Readable } from "node:stream";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { SpeechRequest } from "../../../schemas/speech.ts";
import { GatewayError } from "../../core/errors.ts";
import type { SynthesisEngine } from "../../engines/synthesis-engine.ts";
import type { PieceRequest, PieceSpeaker } from "../../speech/piper-http.ts";
import { speechFile, speechStream } from "../../speech/synthesis.ts";
import { speechPieces } from "../../speech/text.ts";
import { callOf } from "../call.ts";
import type { Call } from "../edits/edits.ts";
import { readAhead } from "./read-ahead.ts";
import type { Spool } from "./spool.ts";
import { isEnd } from "./until.ts";
import type { SpeechUse } from "./use.ts";

export interface SpeakDeps {
  readonly use: SpeechUse;
  readonly engines: { readonly synthesis: PieceSpeaker & Pick<SynthesisEngine, "check"> };
  /** For sound that was made sooner than its listener takes it. */
  readonly spool: Spool;
  /** Default 15 min: ms after which a listener who takes nothing of what he is sent is gone. */
  readonly readStallMs?: number;
}

/** Somebody who pauses what he plays reads nothing meanwhile. */
const defaultStallMs = 15 * 60_000;
/** Characters; some twenty seconds of sound, made in less than one. */
const wholeUpTo = 300;
const headerBytes = 44;

export async function speak(
  deps: SpeakDeps,
  wanted: SpeechRequest,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  const { input, response_format: format = "wav" } = wanted;
  // First: nobody's voice is changed for a text that has no sound.
  if (speechPieces(input).length === 0)
    throw new GatewayError("invalid_request", "`input` has nothing in it that can be spoken", { param: "input" });
  const { header, first, parts, release } = await begun(deps, wanted, callOf(request, reply));
  const rest = readAhead(parts, deps.spool);
  // It is made at its own pace: no listener keeps the engine from anybody.
  void rest.made.then(release);
  async function* body(): AsyncGenerator<Uint8Array> {
    if (format === "wav") yield header;
    yield first;
    yield* rest.read();
  }
  const stream = Readable.from(body(), { objectMode: false });
  // Also where nobody reads it: then the generator's own end never comes.
  stream.once("close", () => void rest.close());
  // Node ends a connection on which nothing goes for so long.
  reply.raw.setTimeout(deps.readStallMs ?? defaultStallMs);
  if (input.length <= wholeUpTo)
    void reply.header("content-length", first.length + (format === "wav" ? headerBytes : 0));
  const sampleRate = new DataView(header.buffer, header.byteOffset).getUint32(24, true);
  void reply.type(format === "wav" ? "audio/wav" : `audio/pcm;rate=${sampleRate};channels=1`).send(stream);
}

interface Begun {
  readonly header: Uint8Array;
  readonly first: Uint8Array;
  readonly parts: AsyncGenerator<Uint8Array, void>;
  release(): void;
}

/** Once more where the engine has ended: nothing has been sent yet. */
async function begun({ use, engines }: SpeakDeps, wanted: SpeechRequest, call: Call): Promise<Begun> {
  const { input, voice, speed = 1 } = wanted;
  const pieceOf = (speaker: number | null): PieceRequest => ({
    text: input,
    voice: null,
    speaker,
    lengthScale: speed === 1 ? null : 1 / speed,
  });
  for (let isRepeated = false; ; isRepeated = true) {
    const used = await use.voice(voice, call, (speaker) => engines.synthesis.check(pieceOf(speaker)));
    const piece = pieceOf(used.speaker);
    const parts: AsyncGenerator<Uint8Array, void> =
      input.length <= wholeUpTo
        ? wholeFile(speechFile(engines.synthesis, piece, call.signal))
        : speechStream(engines.synthesis, piece, call.signal);
    try {
      const start = await beginning(parts);
      used.confirm();
      return { ...start, parts, release: used.release };
    } catch (error) {
      if (!call.signal.aborted) await used.takeBack();
      used.release();
      if (isRepeated || call.signal.aborted || !isEnd(error)) throw error;
    }
  }
}

async function* wholeFile(file: Promise<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield await file;
}

/** What goes wrong before there is any sound is still an answer of its own. */
async function beginning(parts: AsyncGenerator<Uint8Array, void>): Promise<{ header: Uint8Array; first: Uint8Array }> {
  const first = await parts.next();
  if (first.done === true) throw new GatewayError("upstream_failed", "the speech engine made no sound");
  const header = first.value.subarray(0, headerBytes);
  if (first.value.length > headerBytes) return { header, first: first.value.subarray(headerBytes) };
  const next = await parts.next();
  return { header, first: next.done === true ? new Uint8Array() : next.value };
}
