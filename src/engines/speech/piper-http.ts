// The HTTP interface of Piper's server from 1.5.0 on, which sherpa-server.ts speaks too.
import { GatewayError, reasonOf } from "../../core/errors.ts";
import { isJsonObject, parseJson } from "../../core/json.ts";
import { readAtMost } from "../../core/read-at-most.ts";
import { type Pcm, parseWav } from "../../speech/wav.ts";
import { request } from "../../undici.ts";

export interface PieceRequest {
  readonly text: string;
  /** Null: the voice's only or first one. */
  readonly speaker: number | null;
  /** 1 is the voice's own pace, 2 half as fast. */
  readonly lengthScale: number | null;
}

const probeMs = 2_000;
/** 350 characters are half a minute, 3 MB at most. */
const answerLimit = 64 * 1024 * 1024;

/** An older Piper has another interface. Before 1.3.0 it reads JSON aloud and calls it a success: it is told by a GET. */
export async function requireSpeech(base: string, signal: AbortSignal): Promise<void> {
  if (await describesVoice(base, signal)) return;
  throw new GatewayError("engine_failed", "the installed Piper is older than 1.5.0: upgrade it");
}

/** Throws `upstream_failed` where nothing answers. */
export async function describesVoice(base: string, signal: AbortSignal): Promise<boolean> {
  try {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(probeMs)]);
    const { statusCode, body } = await request(`${base}/info`, { reset: true, signal: limit });
    const text = (await readAtMost(body, answerLimit, endless)).toString("utf8");
    return statusCode === 200 && isJsonObject(parseJson(text));
  } catch (error) {
    throw brokeOff(error);
  }
}

/** Names no voice: for an unknown one Piper uses another. Throws `upstream_failed`, with a cause if the connection broke. */
export async function speakPiece(
  base: string,
  { text, speaker, lengthScale }: PieceRequest,
  signal: AbortSignal,
): Promise<Pcm> {
  try {
    const { statusCode, headers, body } = await request(`${base}/synthesize`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      // null in any of them is an error 500 there, so they are left out.
      body: JSON.stringify({ text, speaker_id: speaker ?? undefined, length_scale: lengthScale ?? undefined }),
      // It closes the connection after each answer.
      reset: true,
      headersTimeout: 0,
      bodyTimeout: 0,
      signal,
    });
    const bytes = await readAtMost(body, answerLimit, endless);
    // Piper calls sound text/html too, and any failure is a web page; the embedded engine's server sends the reason.
    const why = String(headers["content-type"]).startsWith("text/plain") ? `: ${bytes.toString("utf8", 0, 300)}` : "";
    const start = JSON.stringify(text.slice(0, 60));
    if (statusCode !== 200) throw failed(`answered ${statusCode} to ${start}${why}`);
    const sound = parseWav(bytes);
    if (sound.samples.length === 0) throw failed(`made no sound of ${start}`);
    return sound;
  } catch (error) {
    throw brokeOff(error);
  }
}

function brokeOff(error: unknown): GatewayError {
  return error instanceof GatewayError ? error : failed(`broke off (${reasonOf(error)})`, error);
}

function failed(how: string, cause?: unknown): GatewayError {
  return new GatewayError("upstream_failed", `the speech engine ${how}`, { cause });
}

function endless(): GatewayError {
  return failed(`sends more than ${answerLimit} bytes`);
}
