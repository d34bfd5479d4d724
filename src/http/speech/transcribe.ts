// An upload's way to the transcription engine: as it comes, and once more from its beginning where the engine has ended.
// Answers what the engine answers, whatever form of it the request asked for.
import type { IncomingMessage } from "node:http";
import type { FastifyReply, FastifyRequest } from "fastify";
import { toGatewayError } from "../../core/errors.ts";
import type { TranscriptionEngine } from "../../engines/transcription-engine.ts";
import type { Transcription } from "../../engines/whisper.ts";
import { isOn } from "../../speech/transcription-fields.ts";
import { callOf } from "../call.ts";
import type { Call } from "../edits/edits.ts";
import { grantTime } from "./patience.ts";
import { transcriptEvents } from "./transcript-events.ts";
import { isEnd, until } from "./until.ts";
import { createUploadSource, tooLarge, type UploadSource } from "./upload-source.ts";
import type { SpeechUse } from "./use.ts";

export interface TranscribeDeps {
  readonly use: SpeechUse;
  readonly engines: { readonly transcription: TranscriptionEngine };
  /** Bytes. */
  readonly uploadLimit: number;
  /** ms that an upload may bring next to nothing while the engine waits for it, and all others behind it. */
  readonly uploadStallMs: number;
  /** ms in which one has to be whole once its turn has begun, while others wait. */
  readonly uploadTimeMs: number;
  /** No new work is taken, and what has not begun is given up. */
  readonly stopping: AbortSignal;
  /** What is under way is given up. */
  readonly cutOff: AbortSignal;
}

/** Each of those that may stand in line before it may end the engine. */
const attempts = 17;
/** ms for the rest of an upload that nobody wants. */
const restMs = 30_000;

export async function transcribe(deps: TranscribeDeps, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const { raw } = request;
  const over = grantTime(raw.socket);
  const source = createUploadSource(raw.iterator({ destroyOnReturn: false }), {
    limit: deps.uploadLimit,
    stallMs: deps.uploadStallMs,
    wholeMs: deps.uploadTimeMs,
    othersWait: () => deps.engines.transcription.snapshot().users > 1,
  });
  try {
    const { contentType, body, fields } = await heard(deps, request, callOf(request, reply), source);
    const events = isOn(fields.get("stream")) ? transcriptEvents(contentType, body) : null;
    if (events === null) void reply.type(contentType).send(Buffer.from(body.buffer, body.byteOffset, body.byteLength));
    else void reply.type("text/event-stream").header("cache-control", "no-cache").send(events);
  } catch (error) {
    const failure = toGatewayError(error);
    // Most clients read an answer only when they have sent everything; what is too much, never comes or comes too late is not read.
    if (["body_too_large", "upload_stalled", "shutting_down"].includes(failure.code))
      void reply.header("connection", "close");
    else dropRest(raw, source);
    throw failure;
  } finally {
    over();
  }
}

async function heard(
  { use, engines, stopping, cutOff, uploadLimit }: TranscribeDeps,
  { raw }: FastifyRequest,
  call: Call,
  source: UploadSource,
): Promise<Transcription> {
  const length = raw.headers["content-length"];
  const contentLength = length === undefined ? null : Number(length);
  if (contentLength !== null && contentLength > uploadLimit) throw tooLarge(uploadLimit);
  let isRepeated = false;
  for (let attempt = 1; ; attempt++) {
    const release = await until(stopping, call.signal, (signal) => use.transcription({ ...call, signal }));
    try {
      return await until(cutOff, call.signal, (signal) =>
        until(stopping, signal, (waiting) =>
          engines.transcription.transcribe({
            contentType: raw.headers["content-type"] ?? "",
            contentLength,
            body: source.open,
            waiting,
            signal,
          }),
        ),
      );
    } catch (error) {
      // An upload over which the engine ends would end it again and again.
      if (attempt === attempts || isRepeated || !source.canRepeat() || !isEnd(error)) throw error;
      isRepeated = source.hasBegun();
    } finally {
      release();
    }
  }
}

function dropRest(raw: IncomingMessage, source: UploadSource): void {
  if (raw.readableEnded || raw.destroyed) return;
  const timer = setTimeout(() => raw.destroy(), restMs);
  timer.unref();
  raw.once("close", () => clearTimeout(timer));
  const drop = (): void => void raw.resume();
  source.close().then(drop, drop);
}
