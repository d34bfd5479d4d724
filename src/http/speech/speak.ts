// A text's way to sound: a short one as one file with its length, a long one sent while it is being made.
import { Readable } from "node:stream";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { SpeechRequest } from "../../../schemas/speech.ts";
import type { SpeechTurn, SpeechTurns } from "../../commands/speech/turns.ts";
import { chooseVoice, type VoiceLists } from "../../commands/speech/voice-choice.ts";
import { clientLeftError, GatewayError } from "../../core/errors.ts";
import { hasEnded } from "../../engines/process/server-process.ts";
import type { SpeechEngine } from "../../engines/speech/speech-engine.ts";
import type { VoiceRun } from "../../engines/speech/voice-process.ts";
import { type Piece, speechPieces, spokenParts } from "../../speech/text.ts";
import { type Pcm, sampleBytes, wavFile, wavHeader } from "../../speech/wav.ts";
import { callOf } from "../server/call.ts";

export interface SpeakDeps {
  readonly turns: { synthesis(...asked: Parameters<SpeechTurns["synthesis"]>): Promise<SpeechTurn<Speaking>> };
  readonly engines: { readonly synthesis: Pick<SpeechEngine, "othersWait"> };
  readonly voices: VoiceLists;
  /** Default 15 s: how long a listener may leave sound unread while others wait. */
  readonly listenerStallMs?: number;
}

type Speaking = Pick<VoiceRun, "speak">;
type Wanted = Pick<SpeechRequest, "input" | "voice" | "speed" | "response_format">;

/** Characters; some twenty seconds of sound, made in less than one. */
const wholeUpTo = 300;
/** Bytes of sound that are made ahead of a listener: half a minute. Then the engine waits, and the queue with it. */
const aheadBytes = 1024 * 1024;
/** Two seconds of sound: a player that reads at playing speed takes one in time. */
const chunkBytes = 64 * 1024;
const defaultStallMs = 15_000;

export async function speak(
  deps: SpeakDeps,
  { input, voice: name, speed = 1, response_format: format = "wav" }: Wanted,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  // First: no voice is changed for a text that has no sound.
  const pieces = speechPieces(input);
  if (pieces.length === 0)
    throw new GatewayError("invalid_request", "`input` has nothing in it that can be spoken", { param: "input" });
  const call = callOf(request, reply);
  const { voice, speaker } = await chooseVoice(name, deps.voices, call.signal);
  const turn = await deps.turns.synthesis(voice, call);
  const wanted = { speaker, lengthScale: speed === 1 ? null : 1 / speed };
  try {
    const sounds = soundsOf(pieces, wanted, turn, call.signal);
    // What fails before there is any sound is still an answer of its own.
    const first = await sounds.next();
    if (first.done === true) throw new GatewayError("upstream_failed", "the speech engine made no sound");
    const isWav = format === "wav";
    const type = isWav ? "audio/wav" : `audio/pcm;rate=${first.value.sampleRate};channels=1`;
    if (input.length > wholeUpTo) {
      const header = isWav ? [wavHeader(first.value, null)] : [];
      void reply.type(type).send(streamOf(deps, header, first.value, sounds, turn));
      return;
    }
    const all = [first.value];
    for await (const sound of sounds) all.push(sound);
    turn.over();
    void reply.type(type).send(Buffer.from(isWav ? wavFile(all) : Buffer.concat(all.map(bytesOf))));
  } catch (error) {
    turn.over();
    throw error;
  }
}

/** A piece over which the engine ends is asked for once more. */
function soundsOf(
  pieces: readonly Piece[],
  wanted: { readonly speaker: number | null; readonly lengthScale: number | null },
  turn: SpeechTurn<Speaking>,
  left: AbortSignal,
): AsyncGenerator<Pcm, void> {
  return spokenParts(pieces, async (text) => {
    if (left.aborted) throw clientLeftError();
    try {
      return await turn.run().speak({ text, ...wanted });
    } catch (error) {
      if (!hasEnded(error)) throw error;
      await turn.again();
      return turn.run().speak({ text, ...wanted });
    }
  });
}

function streamOf(
  { engines, listenerStallMs = defaultStallMs }: SpeakDeps,
  header: readonly Uint8Array[],
  first: Pcm,
  sounds: AsyncGenerator<Pcm, void>,
  turn: Pick<SpeechTurn<unknown>, "over">,
): Readable {
  async function* chunks(): AsyncGenerator<Uint8Array, void> {
    yield* header;
    yield* chunksOf(first);
    for await (const sound of sounds) yield* chunksOf(sound);
    // The last of it is made: it is sent without the engine.
    turn.over();
  }

  async function* chunksOf(sound: Pcm): AsyncGenerator<Uint8Array, void> {
    const bytes = bytesOf(sound);
    for (let at = 0; at < bytes.length; at += chunkBytes) {
      const timer = setInterval(endStalled, listenerStallMs);
      try {
        yield bytes.subarray(at, at + chunkBytes);
      } finally {
        clearInterval(timer);
      }
    }
  }

  function endStalled(): void {
    if (engines.synthesis.othersWait())
      stream.destroy(new GatewayError("cancelled", "the client read nothing while others waited"));
  }

  const stream = Readable.from(chunks(), { objectMode: false, highWaterMark: aheadBytes });
  // Also where nothing was read of it: then the end of the generator never comes.
  stream.once("close", () => turn.over());
  return stream;
}

function bytesOf({ samples }: Pcm): Uint8Array {
  return sampleBytes(samples);
}
