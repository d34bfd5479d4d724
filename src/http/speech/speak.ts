// A text's way to sound: a short one as one file with its length, a long one sent while it is being made.
import { Readable } from "node:stream";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { SpeechRequest } from "../../../schemas/speech.ts";
import { GatewayError } from "../../core/errors.ts";
import type { SynthesisEngine } from "../../engines/synthesis-engine.ts";
import { speechFile, speechStream } from "../../speech/synthesis.ts";
import { speechPieces } from "../../speech/text.ts";
import { callOf } from "../call.ts";
import type { Call } from "../edits/edits.ts";
import { createReaderWatch } from "./reader-watch.ts";
import { isEnd } from "./until.ts";
import type { SpeechUse } from "./use.ts";

export interface SpeakDeps {
  readonly use: SpeechUse;
  readonly engines: { readonly synthesis: SynthesisEngine };
  /** Default 60 s: ms that a listener may leave unread what he is sent, and the engine with it. */
  readonly readStallMs?: number;
}

/**
 * A listener that plays while it reads takes 32 kB a second; the system tells of that in steps of a third of what it holds: 45 s
 * apart, they were seen.
 */
const defaultStallMs = 60_000;
/** How much sooner a listener is given up who keeps others from their voice. */
const whileOthersWait = 1 / 3;
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
  deps.use.requireOn("synthesis");
  // First: nobody's voice is changed for a text that has no sound.
  if (speechPieces(input).length === 0)
    throw new GatewayError("invalid_request", "`input` has nothing in it that can be spoken", { param: "input" });
  const { header, first, parts, release } = await begun(deps, wanted, callOf(request, reply));
  const stallMs = deps.readStallMs ?? defaultStallMs;
  const watch = createReaderWatch(
    () => (deps.engines.synthesis.isAwaited() ? stallMs * whileOthersWait : stallMs),
    () => void reply.raw.destroy(),
  );
  async function* body(): AsyncGenerator<Uint8Array> {
    if (format === "wav") yield* watch.slices(header);
    yield* watch.slices(first);
    for await (const part of parts) yield* watch.slices(part);
    watch.last();
  }
  const stream = Readable.from(body(), { objectMode: false });
  // Also where nobody reads it: then the generator's own end never comes.
  stream.once("close", () => {
    watch.stop();
    void parts.return(undefined);
    release();
  });
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
  for (let isRepeated = false; ; isRepeated = true) {
    const { speaker, release } = await use.voice(voice, call);
    const piece = { text: input, voice: null, speaker, lengthScale: speed === 1 ? null : 1 / speed };
    const parts: AsyncGenerator<Uint8Array, void> =
      input.length <= wholeUpTo
        ? wholeFile(speechFile(engines.synthesis, piece, call.signal))
        : speechStream(engines.synthesis, piece, call.signal);
    try {
      return { ...(await beginning(parts)), parts, release };
    } catch (error) {
      release();
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
