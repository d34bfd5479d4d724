// A text's way to sound: a short one as one file with its length, a long one sent while it is being made.
import { Readable } from "node:stream";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { SpeechRequest } from "../../../schemas/speech.ts";
import { GatewayError } from "../../core/errors.ts";
import type { SynthesisEngine } from "../../engines/synthesis-engine.ts";
import { speechFile, speechStream } from "../../speech/synthesis.ts";
import { callOf } from "../call.ts";
import type { SpeechUse } from "./use.ts";

export interface SpeakDeps {
  readonly use: SpeechUse;
  readonly engines: { readonly synthesis: SynthesisEngine };
}

/** Characters; some twenty seconds of sound, made in less than one. */
const wholeUpTo = 300;
const headerBytes = 44;

export async function speak(
  deps: SpeakDeps,
  { input, voice, speed = 1, response_format: format = "wav" }: SpeechRequest,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  deps.use.requireOn("synthesis");
  const call = callOf(request, reply);
  const release = await deps.use.voice(voice, call);
  const wanted = { text: input, voice: null, speaker: null, lengthScale: speed === 1 ? null : 1 / speed };
  const parts: AsyncGenerator<Uint8Array, void> =
    input.length <= wholeUpTo
      ? wholeFile(speechFile(deps.engines.synthesis, wanted, call.signal))
      : speechStream(deps.engines.synthesis, wanted, call.signal);
  const { header, first } = await beginning(parts).catch((error: unknown) => {
    release();
    throw error;
  });
  async function* body(): AsyncGenerator<Uint8Array> {
    if (format === "wav") yield header;
    yield first;
    yield* parts;
  }
  const stream = Readable.from(body(), { objectMode: false });
  // Also where nobody reads it: then the generator's own end never comes.
  stream.once("close", () => {
    void parts.return(undefined);
    release();
  });
  if (input.length <= wholeUpTo)
    void reply.header("content-length", first.length + (format === "wav" ? headerBytes : 0));
  const sampleRate = new DataView(header.buffer, header.byteOffset).getUint32(24, true);
  void reply.type(format === "wav" ? "audio/wav" : `audio/pcm;rate=${sampleRate};channels=1`).send(stream);
}

async function* wholeFile(file: Promise<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield await file;
}

/** What goes wrong before there is any sound is still an answer of its own. */
async function beginning(parts: AsyncGenerator<Uint8Array, void>): Promise<{ header: Uint8Array; first: Uint8Array }> {
  const begun = await parts.next();
  if (begun.done === true) throw new GatewayError("upstream_failed", "the speech engine made no sound");
  const header = begun.value.subarray(0, headerBytes);
  if (begun.value.length > headerBytes) return { header, first: begun.value.subarray(headerBytes) };
  const next = await parts.next();
  return { header, first: next.done === true ? new Uint8Array() : next.value };
}
