// Speaks with a Piper server of whatever generation: finds out which, sends a piece of text, takes nothing but sound.
// Cuts no text and joins no sound: that is synthesis.ts. Starts no server: that is the engines'.
import { Agent, request } from "undici";
import { GatewayError, systemCode } from "../core/errors.ts";
import { readAtMost } from "../core/read-at-most.ts";
import { unlessLeft } from "../core/unless-left.ts";
import { createTurns } from "./turns.ts";
import { isRecord, isVoiceId } from "./voices.ts";
import { type Pcm, parseWav } from "./wav.ts";

/**
 * `synthesize`: 1.5.0 and later. `json`: 1.3.0 to 1.4.2. `text`: before that. A server of the third kind reads JSON aloud
 * and calls it a success, so it is found out without sending any.
 */
export type PiperGeneration = "synthesize" | "json" | "text";

export interface PieceRequest {
  readonly text: string;
  /** Null leaves it to the server; a server of the `text` generation knows only its own. */
  readonly voice: string | null;
  readonly speaker: number | null;
  /** 1 is the voice's own pace, 2 half as fast. */
  readonly lengthScale: number | null;
}

/** Whatever makes sound of a piece of text. */
export interface PieceSpeaker {
  /** Throws `upstream_failed`, `invalid_request`, `cancelled`. */
  speak(piece: PieceRequest, signal: AbortSignal): Promise<Pcm>;
}

export interface PiperClient extends PieceSpeaker {
  readonly generation: PiperGeneration;
  /** Throws `invalid_request` for what this server cannot be asked. */
  check(piece: PieceRequest): void;
  /** Bytes of sound that the server has sent, and pieces that it has begun: it never gives memory back. */
  produced(): { readonly bytes: number; readonly requests: number };
  close(): Promise<void>;
}

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: Uint8Array;
}

const probeMs = 2_000;
/** Of a small answer about the server itself: 173 voices with 5 kB each is below 1 MB. */
const descriptionLimit = 16 * 1024 * 1024;
/** 350 characters are half a minute, 3 MB at most. */
const soundLimit = 64 * 1024 * 1024;

/** Throws `upstream_failed` where nothing answers at `origin`, which may have a path. */
export async function detectPiper(origin: string, signal?: AbortSignal): Promise<PiperGeneration> {
  if (await answersJson(`${origin}/info`, signal)) return "synthesize";
  if (await answersJson(`${origin}/voices`, signal)) return "json";
  return "text";
}

/** Names and descriptions of the voices that a server has; null where it does not tell. Its names may lack last letters. */
export async function piperVoices(origin: string, signal?: AbortSignal): Promise<ReadonlyMap<string, unknown> | null> {
  const { status, body } = await get(`${origin}/voices`, signal);
  const value = status === 200 ? parsed(body) : null;
  return isRecord(value) ? new Map(Object.entries(value)) : null;
}

/**
 * `concurrency`: pieces at once, the rest waits. Piper starts a thread for each request, without limit, and they all end
 * together. `timeoutMs` is for a piece.
 */
export function createPiperClient(options: {
  readonly origin: string;
  readonly generation: PiperGeneration;
  readonly concurrency: number;
  readonly timeoutMs: number;
  /** A piece took longer than that. */
  readonly onOverdue?: (why: string) => void;
  /** The server ends a piece whose client has left. Piper does not: there it keeps its turn until Piper is through with it. */
  readonly endsWhenLeft: boolean;
}): PiperClient {
  const { generation } = options;
  // It closes the connection after each answer.
  const agent = new Agent({ pipelining: 1, connect: { timeout: probeMs } });
  const turns = createTurns({ width: options.concurrency, depth: 64, what: "pieces of speech" });
  let bytes = 0;
  let requests = 0;

  async function post(piece: PieceRequest, signal: AbortSignal | null): Promise<Answer> {
    requests++;
    const limit = AbortSignal.timeout(options.timeoutMs);
    try {
      const answer = await request(`${options.origin}${generation === "synthesize" ? "/synthesize" : "/"}`, {
        dispatcher: agent,
        method: "POST",
        headers: { "content-type": generation === "text" ? "text/plain; charset=utf-8" : "application/json" },
        body: generation === "text" ? piece.text : JSON.stringify(jsonBody(piece)),
        reset: true,
        headersTimeout: 0,
        bodyTimeout: 0,
        signal: signal ? AbortSignal.any([signal, limit]) : limit,
      });
      const body = await readAtMost(answer.body, soundLimit, () => endless(soundLimit));
      return { status: answer.statusCode, type: String(answer.headers["content-type"]), body };
    } catch (error) {
      if (signal?.aborted) throw left(error);
      if (limit.aborted) {
        options.onOverdue?.(`it did not speak a piece of text within ${options.timeoutMs / 1000} s and was ended`);
        throw failed(`did not answer within ${options.timeoutMs} ms`, error);
      }
      throw error instanceof GatewayError ? error : failed(`broke off (${reasonOf(error)})`, error);
    }
  }

  async function make(piece: PieceRequest, signal: AbortSignal | null): Promise<Pcm> {
    const answer = await post(piece, signal);
    bytes += answer.body.length;
    const start = JSON.stringify(piece.text.slice(0, 60));
    // Sound is called text/html by Piper as well.
    if (answer.status !== 200) throw failed(`answered ${answer.status} to ${start}${reasonIn(answer)}`);
    const sound = parseWav(answer.body);
    if (sound.samples.length === 0) throw failed(`made no sound of ${start}`);
    return sound;
  }

  return {
    generation,
    check: (piece) => check(piece, generation),
    produced: () => ({ bytes, requests }),
    speak: async (piece, signal) => {
      check(piece, generation);
      const over = await turns.take(signal);
      if (signal.aborted) {
        over();
        throw left();
      }
      const work = make(piece, options.endsWhenLeft ? signal : null).finally(over);
      return options.endsWhenLeft ? work : unlessLeft(work, signal);
    },
    close: () => agent.destroy(),
  };
}

/** Of Piper any failure is a web page that gives no reason; the embedded engine's server gives one. */
function reasonIn({ type, body }: Answer): string {
  return type.startsWith("text/plain") ? `: ${new TextDecoder().decode(body.subarray(0, 300))}` : "";
}

function jsonBody({ text, voice, speaker, lengthScale }: PieceRequest): object {
  // null in any of them is an error 500 there, so they are left out.
  return {
    text,
    ...(voice === null ? {} : { voice }),
    ...(speaker === null ? {} : { speaker_id: speaker }),
    ...(lengthScale === null ? {} : { length_scale: lengthScale }),
  };
}

/** Nothing is checked on the other side: a name is joined into a path, and numbers go to the model as they are. */
function check(piece: PieceRequest, generation: PiperGeneration): void {
  const { voice, speaker, lengthScale } = piece;
  if (voice !== null && !isVoiceId(voice)) throw invalid(`${JSON.stringify(voice.slice(0, 120))} is no voice`);
  if (speaker !== null && !(Number.isSafeInteger(speaker) && speaker >= 0)) throw invalid(`${speaker} is no speaker`);
  if (lengthScale !== null && !(lengthScale >= 0.1 && lengthScale <= 10)) throw invalid(`${lengthScale} is no pace`);
  if (generation === "text" && (speaker !== null || lengthScale !== null)) {
    const param = lengthScale !== null ? "speed" : "voice";
    const what = lengthScale !== null ? "at another speed" : "as another speaker";
    throw new GatewayError("invalid_request", `the installed version of Piper cannot speak ${what}: a newer one can`, {
      param,
    });
  }
}

async function answersJson(url: string, signal: AbortSignal | undefined): Promise<boolean> {
  const { status, body } = await get(url, signal);
  return status === 200 && isRecord(parsed(body));
}

async function get(url: string, signal: AbortSignal | undefined): Promise<{ status: number; body: string }> {
  const limit = AbortSignal.timeout(probeMs);
  try {
    const answer = await request(url, { reset: true, signal: signal ? AbortSignal.any([signal, limit]) : limit });
    const body = await readAtMost(answer.body, descriptionLimit, () => endless(descriptionLimit));
    return { status: answer.statusCode, body: new TextDecoder().decode(body) };
  } catch (error) {
    throw error instanceof GatewayError ? error : failed(`does not answer (${reasonOf(error)})`, error);
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function left(cause?: unknown): GatewayError {
  return new GatewayError("cancelled", "the client left", { cause });
}

function reasonOf(error: unknown): string {
  return systemCode(error) ?? (error instanceof Error ? error.message : String(error));
}

function failed(how: string, cause?: unknown): GatewayError {
  return new GatewayError("upstream_failed", `the speech engine ${how}`, cause === undefined ? {} : { cause });
}

function invalid(why: string): GatewayError {
  return new GatewayError("invalid_request", why);
}

function endless(limit: number): GatewayError {
  return failed(`sends more than ${limit} bytes`);
}
