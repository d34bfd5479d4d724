// An upload's way to the transcription engine: as it comes, no byte of it kept, and not more of it than is allowed.
import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import type { FastifyReply, FastifyRequest } from "fastify";
import { GatewayError, toGatewayError } from "../../core/errors.ts";
import type { TranscriptionEngine } from "../../engines/transcription-engine.ts";
import { callOf } from "../call.ts";
import type { SpeechUse } from "./use.ts";

export interface TranscribeDeps {
  readonly use: SpeechUse;
  readonly engines: { readonly transcription: TranscriptionEngine };
  /** Bytes. */
  readonly uploadLimit: number;
}

/** Answers with what the engine answers, whatever form of it the request asked for. */
export async function transcribe(deps: TranscribeDeps, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const { raw } = request;
  const contentLength = lengthOf(raw);
  try {
    deps.use.requireOn("transcription");
    if (contentLength !== null && contentLength > deps.uploadLimit) throw tooLarge(deps.uploadLimit);
    const call = callOf(request, reply);
    const release = await deps.use.transcription(call);
    try {
      const { contentType, body } = await deps.engines.transcription.transcribe({
        contentType: raw.headers["content-type"] ?? "",
        contentLength,
        body: limited(raw, deps.uploadLimit),
        signal: call.signal,
      });
      void reply.type(contentType).send(Buffer.from(body.buffer, body.byteOffset, body.byteLength));
    } finally {
      release();
    }
  } catch (error) {
    const failure = causeOf(error);
    // Most clients read an answer only when they have sent everything; what is too much is not read.
    if (failure.code === "body_too_large") void reply.header("connection", "close");
    else raw.resume();
    throw failure;
  }
}

function lengthOf({ headers }: IncomingMessage): number | null {
  const text = headers["content-length"];
  return text === undefined ? null : Number(text);
}

/** The same bytes. The request itself stays open at the end, however it ends: the answer goes over its connection. */
function limited(raw: IncomingMessage, limit: number): Readable {
  async function* bytes(): AsyncGenerator<Buffer> {
    let length = 0;
    for await (const chunk of raw.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length > limit) throw tooLarge(limit);
      yield chunk;
    }
  }
  return Readable.from(bytes(), { objectMode: false });
}

/** That the upload was too large comes back as the engine's connection breaking off. */
function causeOf(error: unknown): GatewayError {
  for (let each: unknown = error; each instanceof Error; each = each.cause)
    if (each instanceof GatewayError && each.code === "body_too_large") return each;
  return toGatewayError(error);
}

function tooLarge(limit: number): GatewayError {
  return new GatewayError("body_too_large", `the upload is larger than the ${limit} bytes that --upload-limit allows`);
}
