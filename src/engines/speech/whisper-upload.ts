// One upload to whisper-server, and its answer. Keeps no state.
import { Readable } from "node:stream";
import { clientLeftError, GatewayError, reasonOf, systemCode } from "../../core/errors.ts";
import { readAtMost } from "../../core/read-at-most.ts";
import { request } from "../../undici.ts";
import { transcriptionPath } from "./whisper-wire.ts";

/** Text alone: hours of speech with all their words and times are a few megabytes. */
const answerLimit = 64 * 1024 * 1024;

export interface Upload {
  /** As the client sent it: `multipart/form-data; boundary=…`. */
  readonly contentType: string;
  /** Bytes; null where the client did not say. */
  readonly contentLength: number | null;
  /** Not read faster than the engine takes it. */
  readonly body: AsyncIterable<Uint8Array>;
}

export interface EngineAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: Buffer;
}

/** Throws `cancelled`, `upstream_failed` where the engine broke off, and what the upload's own bytes throw. */
export async function sendUpload(
  base: string,
  { contentType, contentLength, body }: Upload,
  signal: AbortSignal,
): Promise<EngineAnswer> {
  let fault: unknown;
  async function* noted(): AsyncGenerator<Uint8Array> {
    try {
      yield* body;
    } catch (error) {
      fault = error;
      throw error;
    }
  }
  try {
    const answer = await request(`${base}${transcriptionPath}`, {
      method: "POST",
      headers: {
        "content-type": contentType,
        ...(contentLength === null ? {} : { "content-length": String(contentLength) }),
      },
      body: Readable.from(noted(), { objectMode: false }),
      // A stream cannot be sent a second time over a connection that turns out to be closed.
      reset: true,
      // An hour of speech is silent for minutes.
      headersTimeout: 0,
      bodyTimeout: 0,
      signal,
    });
    const received = await readAtMost(answer.body, answerLimit, endless);
    const type = answer.headers["content-type"];
    return { status: answer.statusCode, contentType: String(type ?? "application/json"), body: received };
  } catch (error) {
    if (fault instanceof GatewayError) throw fault;
    if (signal.aborted || isCutUpload(fault ?? error)) throw clientLeftError({ cause: error });
    if (error instanceof GatewayError) throw error;
    throw new GatewayError("upstream_failed", `the transcription engine broke off (${reasonOf(error)})`, {
      cause: error,
    });
  }
}

/** Node's errors for a request whose client has disconnected. */
function isCutUpload(error: unknown): boolean {
  const code = systemCode(error);
  const message = error instanceof Error ? error.message : "";
  return (code === "ECONNRESET" && message === "aborted") || code === "ERR_STREAM_PREMATURE_CLOSE";
}

function endless(): GatewayError {
  return new GatewayError("upstream_failed", `the transcription engine sends more than ${answerLimit} bytes`);
}
