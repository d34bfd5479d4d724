// The client of a Piper server from 1.3.0 on: detects which one it is, sends a piece of text, accepts only sound.
// synthesis.ts cuts the text and joins the sound.
import { request } from "undici";
import { GatewayError, systemCode } from "../../core/errors.ts";
import { isJsonObject } from "../../core/json.ts";
import { readAtMost } from "../../core/read-at-most.ts";
import { type Pcm, parseWav } from "../../speech/wav.ts";
import { parseJson } from "../../state/atomic-file.ts";

/** `synthesize`: 1.5.0 and later. `json`: 1.3.0 to 1.4.2. */
export type PiperGeneration = "synthesize" | "json";

export interface PieceRequest {
  readonly text: string;
  /** Null: the voice's only or first one. */
  readonly speaker: number | null;
  /** 1 is the voice's own pace, 2 half as fast. */
  readonly lengthScale: number | null;
}

const probeMs = 2_000;
/** Of an answer about the server itself: 173 voices with 5 kB each are below 1 MB. */
const descriptionLimit = 16 * 1024 * 1024;
/** 350 characters are half a minute, 3 MB at most. */
const soundLimit = 64 * 1024 * 1024;

/**
 * Throws `upstream_failed` where nothing answers at `origin`, which may have a path; `engine_failed` for a Piper before 1.3.0: it
 * reads JSON aloud and calls it a success, so it is detected without sending any.
 */
export async function detectPiper(origin: string, signal: AbortSignal): Promise<PiperGeneration> {
  if (await answersJson(`${origin}/info`, signal)) return "synthesize";
  if (await answersJson(`${origin}/voices`, signal)) return "json";
  throw new GatewayError("engine_failed", "the installed Piper is older than 1.3.0: upgrade it");
}

/**
 * Speaks one piece with the voice that the server was started with: for an unknown voice it would use another one. Throws
 * `upstream_failed`, with a cause if the connection broke.
 */
export async function speakPiece(
  { origin, generation }: { readonly origin: string; readonly generation: PiperGeneration },
  piece: PieceRequest,
  signal: AbortSignal,
): Promise<Pcm> {
  try {
    const { statusCode, headers, body } = await request(
      `${origin}${generation === "synthesize" ? "/synthesize" : "/"}`,
      {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(jsonBody(piece)),
        // It closes the connection after each answer.
        reset: true,
        headersTimeout: 0,
        bodyTimeout: 0,
        signal,
      },
    );
    const bytes = await readAtMost(body, soundLimit, () => endless(soundLimit));
    // Piper calls sound text/html too, and any failure is a web page; the embedded engine's server sends the reason.
    const why = String(headers["content-type"]).startsWith("text/plain") ? `: ${bytes.toString("utf8", 0, 300)}` : "";
    const start = JSON.stringify(piece.text.slice(0, 60));
    if (statusCode !== 200) throw failed(`answered ${statusCode} to ${start}${why}`);
    const sound = parseWav(bytes);
    if (sound.samples.length === 0) throw failed(`made no sound of ${start}`);
    return sound;
  } catch (error) {
    throw error instanceof GatewayError ? error : failed(`broke off (${reasonOf(error)})`, error);
  }
}

function jsonBody({ text, speaker, lengthScale }: PieceRequest): object {
  // null in any of them is an error 500 there, so they are left out.
  return {
    text,
    ...(speaker === null ? {} : { speaker_id: speaker }),
    ...(lengthScale === null ? {} : { length_scale: lengthScale }),
  };
}

/** Whether a server at `url` responds, and with a JSON object. Throws `upstream_failed` where none does. */
export async function answersJson(url: string, signal: AbortSignal): Promise<boolean> {
  try {
    const answer = await request(url, { reset: true, signal: AbortSignal.any([signal, AbortSignal.timeout(probeMs)]) });
    const body = await readAtMost(answer.body, descriptionLimit, () => endless(descriptionLimit));
    return answer.statusCode === 200 && isJsonObject(parseJson(body.toString("utf8")));
  } catch (error) {
    throw error instanceof GatewayError ? error : failed(`does not answer (${reasonOf(error)})`, error);
  }
}

function reasonOf(error: unknown): string {
  return systemCode(error) ?? (error instanceof Error ? error.message : String(error));
}

function failed(how: string, cause?: unknown): GatewayError {
  return new GatewayError("upstream_failed", `the speech engine ${how}`, cause === undefined ? {} : { cause });
}

function endless(limit: number): GatewayError {
  return failed(`sends more than ${limit} bytes`);
}
