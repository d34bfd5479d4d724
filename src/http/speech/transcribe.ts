// An upload's way to the transcription engine, as it comes, and the engine's answer back as it is.
import type { IncomingMessage } from "node:http";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { SpeechTurns } from "../../commands/speech/turns.ts";
import { toGatewayError } from "../../core/errors.ts";
import { unlessLeft } from "../../core/unless-left.ts";
import { hasEnded } from "../../engines/process/server-process.ts";
import type { SpeechEngine } from "../../engines/speech/speech-engine.ts";
import type { WhisperRun } from "../../engines/speech/whisper.ts";
import { whileOpen } from "../../scheduler/while-open.ts";
import { callOf } from "../server/call.ts";
import { grantTime } from "../server/server-limits.ts";
import { tooLarge, uploadBytes } from "./upload.ts";

export interface TranscribeDeps {
  readonly turns: Pick<SpeechTurns, "transcription">;
  readonly engines: { readonly transcription: Pick<SpeechEngine, "othersWait"> };
  /** Bytes. */
  readonly uploadLimit: number;
  /** See {@link UploadRules}. */
  readonly uploadStallMs: number;
  readonly uploadTimeMs: number;
  /** Answers under way end. */
  readonly cutOff: AbortSignal;
}

type Answer = Awaited<ReturnType<WhisperRun["transcribe"]>>;

/** ms for the rest of an upload that was refused. */
const restMs = 30_000;

export async function transcribe(deps: TranscribeDeps, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const { raw } = request;
  // An upload that is queued is not read meanwhile.
  const revoke = grantTime(raw.socket);
  const bytes = raw.iterator({ destroyOnReturn: false }) as AsyncIterator<Uint8Array>;
  try {
    const { contentType, body } = await answerTo(deps, request, reply, bytes);
    void reply.type(contentType).send(body);
  } catch (error) {
    const failure = toGatewayError(error);
    const isEndless = ["body_too_large", "upload_stalled"].includes(failure.code);
    if (isEndless || failure.code === "shutting_down") void reply.header("connection", "close");
    // Most clients read an answer only when they have sent everything, and a connection with unread bytes is reset.
    if (!isEndless) dropRest(raw, bytes);
    throw failure;
  } finally {
    revoke();
  }
}

async function answerTo(
  { turns, engines, uploadLimit, uploadStallMs, uploadTimeMs, cutOff }: TranscribeDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  bytes: AsyncIterator<Uint8Array>,
): Promise<Answer> {
  const { "content-length": length, "content-type": contentType = "" } = request.headers;
  const contentLength = length === undefined ? null : Number(length);
  if (contentLength !== null && contentLength > uploadLimit) throw tooLarge(uploadLimit);
  const rules = {
    limit: uploadLimit,
    stallMs: uploadStallMs,
    wholeMs: uploadTimeMs,
    othersWait: engines.transcription.othersWait,
  };
  let isTaken = false;
  async function* taken(signal: AbortSignal): AsyncGenerator<Uint8Array> {
    isTaken = true;
    // Else an upload that is cut off is waited for until it counts as stalled.
    yield* uploadBytes({ next: () => unlessLeft(bytes.next(), signal) }, rules);
  }
  const call = callOf(request, reply);
  const turn = await turns.transcription(call);
  const send = (): Promise<Answer> =>
    whileOpen(cutOff, call.signal, (signal) =>
      turn.run().transcribe({ contentType, contentLength, body: taken(signal) }, signal),
    );
  try {
    for (;;) {
      try {
        return await send();
      } catch (error) {
        // The engine had ended before it took any of the upload: nothing is lost.
        if (isTaken || !hasEnded(error)) throw error;
        await turn.again();
      }
    }
  } finally {
    turn.over();
  }
}

function dropRest(raw: IncomingMessage, bytes: AsyncIterator<Uint8Array>): void {
  if (raw.readableEnded || raw.destroyed) return;
  const timer = setTimeout(() => raw.destroy(), restMs).unref();
  raw.once("close", () => clearTimeout(timer));
  const drop = (): void => void raw.resume();
  void bytes.return?.().then(drop, drop);
}
