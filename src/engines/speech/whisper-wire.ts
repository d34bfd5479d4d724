// The wire of whisper-server but for uploads: command line, probes. Starts nothing and keeps no state.
import { basename } from "node:path";
import { clientLeftError, GatewayError } from "../../core/errors.ts";
import { isEnglishOnly } from "../../speech/transcription-models.ts";
import { request } from "../../undici.ts";

export const transcriptionPath = "/v1/audio/transcriptions";
const healthMs = 2_000;

/**
 * `prefix`: the only path that it serves. It has no keys, allows every origin, and loads another model for any client that
 * knows the path. `convertIn`: a folder; null where there is no ffmpeg.
 */
export function whisperArguments(port: number, model: string, prefix: string, convertIn: string | null): string[] {
  const where = ["--host", "127.0.0.1", "--port", String(port), "--request-path", prefix];
  // Its default is English; a request may still name its language.
  const language = isEnglishOnly(basename(model)) ? [] : ["--language", "auto"];
  const convert = convertIn === null ? [] : ["--convert", "--tmp-dir", convertIn];
  return ["--model", model, ...where, "--inference-path", transcriptionPath, ...language, ...convert];
}

/** The port opens when the model is loaded; it answers while it works, too. */
export async function isReady(base: string, signal: AbortSignal): Promise<boolean> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(healthMs)]);
  const statusOf = async (path: string): Promise<number> => {
    const answer = await request(base + path, { reset: true, signal: limit });
    await answer.body.dump();
    return answer.statusCode;
  };
  const status = await statusOf("/health");
  // A version without /health has a page there; most other programs that may have the port answer 404 to that too.
  return status === 200 || (status === 404 && (await statusOf("/")) === 200);
}

/** Throws `cancelled`, `upstream_failed` where the engine does not answer. */
export async function requireAnswer(base: string, signal: AbortSignal): Promise<void> {
  try {
    await isReady(base, signal);
  } catch (cause) {
    if (signal.aborted) throw clientLeftError({ cause });
    throw new GatewayError("upstream_failed", "the transcription engine does not respond", { cause });
  }
}
