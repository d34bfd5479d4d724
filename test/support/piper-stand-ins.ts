// Piper's HTTP server in its three generations, answer for answer as the real ones: the wrong content type, pages instead of
// reasons, wrong voices instead of errors. Its sound is a tone for each voice, the longer the text the longer.
import { once } from "node:events";
import { chmod, readFile, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { basename } from "node:path";
import type { TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { wavFile } from "../../src/speech/wav.ts";
import { cleanUp } from "./clean-up.ts";

/** `text`: before Piper 1.3.0. */
export type StandInGeneration = "synthesize" | "json" | "text";

export interface StandInOptions {
  readonly generation: StandInGeneration;
  /** The voice it was started with, and further ones: name and the tone that it speaks in, in Hz. */
  readonly voices: Readonly<Record<string, number>>;
  readonly sampleRate?: number;
  /** By name, with their numbers; each next one speaks that much higher. Default: one without a name. */
  readonly speakers?: Readonly<Record<string, number>>;
  /** As with a sentence silence of half a sample: an odd number of bytes. */
  readonly oddBytes?: boolean;
  /** How long it works on a piece, also on one whose client has left. */
  readonly work?: { readonly startMs: number; readonly msPerCharacter: number };
}

export interface PiperStandIn {
  readonly origin: string;
  /** `METHOD /path`, in order. */
  readonly requests: readonly string[];
  /** What it has been told to read aloud. */
  readonly spoken: readonly string[];
  /** How many pieces it had to do with at once, at most. */
  most(): number;
  /** Lets it hold back its sound until the result is called. */
  hold(): () => void;
}

interface Behaviour {
  readonly server: Server;
  readonly requests: string[];
  readonly spoken: string[];
  most(): number;
  hold(): () => void;
}

export const secondsPerCharacter = 0.02;

/** A description as `.onnx.json` files have it. */
function voiceDescription(sampleRate: number, speakers: Readonly<Record<string, number>>): object {
  return {
    audio: { sample_rate: sampleRate, quality: "medium" },
    espeak: { voice: "en-us" },
    inference: { noise_scale: 0.667, length_scale: 1, noise_w: 0.8 },
    num_speakers: Math.max(1, Object.keys(speakers).length),
    num_symbols: 256,
    phoneme_id_map: { _: [0], "^": [1], $: [2] },
    phoneme_type: "espeak",
    speaker_id_map: speakers,
  };
}

/** A program that passes for a Python: `what` is what `fake-python.ts` takes; gives its path. */
export async function writeFakePython(path: string, what: string): Promise<string> {
  const script = fileURLToPath(new URL("./fake-python.js", import.meta.url));
  await writeFile(path, `#!/bin/sh\necho >> '${path}.starts'\nexec '${process.execPath}' '${script}' ${what} "$@"\n`);
  await chmod(path, 0o755);
  return path;
}

/** How often {@link writeFakePython}'s program was started. */
export async function startsOf(path: string): Promise<number> {
  return (await readFile(`${path}.starts`, "utf8").catch(() => "")).length;
}

/** In this process, on a free port, until the test ends. */
export async function startPiperStandIn(t: TestContext, options: StandInOptions): Promise<PiperStandIn> {
  const { server, ...rest } = createPiperStandIn(options);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanUp(t, async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  });
  return { ...rest, origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

/** The server alone, not yet listening. */
export function createPiperStandIn(options: StandInOptions): Behaviour {
  const { generation, voices, sampleRate = 22_050, speakers = {}, oddBytes = false } = options;
  const { work = { startMs: 0, msPerCharacter: 0 } } = options;
  const requests: string[] = [];
  const spoken: string[] = [];
  const defaultVoice = Object.keys(voices)[0] ?? "";
  const numSpeakers = Math.max(1, Object.keys(speakers).length);
  let working = 0;
  let most = 0;
  let held: Promise<void> = Promise.resolve();

  /** Null is an error 500. Goes on where the client has left. */
  async function sound(wanted: Record<string, unknown> | null): Promise<Buffer | null> {
    working++;
    most = Math.max(most, working);
    try {
      const text = typeof wanted?.["text"] === "string" ? wanted["text"] : "";
      const sayable = /[\p{L}\p{N}\p{Extended_Pictographic}]/u.test(text);
      const speaker = wanted ? speakerOf(wanted) : null;
      const scale = wanted ? Number(wanted["length_scale"] ?? 1) : 1;
      if (!wanted || text.trim() === "" || (!sayable && generation !== "text") || speaker === null) return null;
      if (wanted["length_scale"] === null || Number.isNaN(scale)) return null;
      spoken.push(text);
      await held;
      await delay(work.startMs + text.length * work.msPerCharacter);
      // A name is joined into a path, whichever way it leads; an unknown voice is the default one, without a word.
      const hertz = voices[basename(String(wanted["voice"]))] ?? voices[defaultVoice] ?? 440;
      const step = (2 * Math.PI * hertz * (speaker + 1)) / sampleRate;
      const length = (sayable ? text.length : 1) * secondsPerCharacter * scale;
      const samples = Int16Array.from({ length: Math.round(length * sampleRate) }, (_, i) =>
        Math.round(32_767 * Math.cos(step * i)),
      );
      const file = Buffer.from(wavFile([{ sampleRate, channels: 1, samples }]));
      return oddBytes ? withOneByteMore(file) : file;
    } finally {
      working--;
    }
  }

  /** Of a voice with one speaker whatever is asked; a name that is unknown is the first one; a number too high by one fails. */
  function speakerOf({ speaker, speaker_id: id }: Record<string, unknown>): number | null {
    if (id !== undefined && typeof id !== "number") return null;
    if (numSpeakers === 1) return 0;
    const number = id ?? speakers[String(speaker)] ?? 0;
    return number === numSpeakers ? null : number > numSpeakers ? 0 : number;
  }

  async function synthesize(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const bytes = await bodyOf(request);
    // A form's body is not in what the server reads.
    const isForm = request.headers["content-type"] === "application/x-www-form-urlencoded";
    const body = isForm ? "" : utf8(bytes);
    const wanted = generation === "text" && body !== null ? { text: body } : readJson(body ?? "");
    answer(response, await sound(wanted));
  }

  function describe(): object {
    return Object.fromEntries(
      Object.keys(voices)
        .toSorted()
        // Python's rstrip takes letters off, not an ending.
        .map((name) => [`${name}.onnx.json`.replace(/[.onxjs]+$/, ""), voiceDescription(sampleRate, speakers)]),
    );
  }

  const voiceRoutes: Readonly<Record<string, Route>> = {
    "GET /voices": (_, response) => sendJson(response, describe()),
    // Both ask the hub, which is not there.
    "GET /all-voices": (_, response) => answer(response, null),
    "POST /download": (_, response) => answer(response, null),
  };
  const routes: Readonly<Record<StandInGeneration, Readonly<Record<string, Route>>>> = {
    synthesize: {
      ...voiceRoutes,
      "GET /": (_, response) => send(response, 200, "<!DOCTYPE html>\n<html><title>Piper</title></html>\n"),
      "GET /info": (_, response) =>
        sendJson(response, {
          voice: { name: defaultVoice, language: "en-us", num_speakers: numSpeakers },
          last:
            spoken.length === 0
              ? null
              : { text: spoken.at(-1), synthesize_seconds: 0.01, phonemes: [], alignments: [] },
        }),
      "POST /synthesize": synthesize,
    },
    json: { ...voiceRoutes, "POST /": synthesize },
    text: {
      "GET /": async (request, response) =>
        answer(response, await sound({ text: new URL(request.url ?? "/", "http://piper").searchParams.get("text") })),
      "POST /": synthesize,
    },
  };

  const server = createServer((request, response) => {
    const path = (request.url ?? "/").split("?")[0] ?? "/";
    requests.push(`${request.method} ${path}`);
    const route = routes[generation][`${request.method} ${path}`];
    if (route) return void route(request, response);
    const allowed = Object.keys(routes[generation])
      .filter((name) => name.endsWith(` ${path}`))
      .map((name) => name.split(" ")[0] ?? "");
    if (allowed.length === 0) return send(response, 404, page("404", "Not Found", notFoundText));
    const methods = ["OPTIONS", ...allowed, ...(allowed.includes("GET") ? ["HEAD"] : [])].toSorted().join(", ");
    if (request.method === "OPTIONS") return send(response, 200, "", methods);
    send(response, 405, page("405", "Method Not Allowed", "The method is not allowed for the requested URL."), methods);
  });
  return {
    server,
    requests,
    spoken,
    most: () => most,
    hold: () => {
      let release = (): void => undefined;
      held = new Promise((resolve) => {
        release = resolve;
      });
      return release;
    },
  };
}

type Route = (request: IncomingMessage, response: ServerResponse) => unknown;

const serverErrorText =
  "The server encountered an internal error and was unable to complete your request. Either the server is overloaded or there is an error in the application.";
const notFoundText =
  "The requested URL was not found on the server. If you entered the URL manually please check your spelling and try again.";

function page(code: string, title: string, text: string): string {
  return `<!doctype html>\n<html lang=en>\n<title>${code} ${title}</title>\n<h1>${title}</h1>\n<p>${text}</p>\n`;
}

/** Sound too is called text/html, and every connection is closed. */
function send(response: ServerResponse, status: number, body: string | Buffer, allow?: string): void {
  const bytes = Buffer.from(body);
  response.writeHead(status, {
    server: "Werkzeug/3.1.8 Python/3.13.5",
    "content-type": "text/html; charset=utf-8",
    ...(allow === undefined ? {} : { allow }),
    "content-length": bytes.length,
    connection: "close",
  });
  response.end(bytes);
}

/** Any failure is the same page. */
function answer(response: ServerResponse, sound: Buffer | null): void {
  if (sound) send(response, 200, sound);
  else send(response, 500, page("500", "Internal Server Error", serverErrorText));
}

function sendJson(response: ServerResponse, value: object): void {
  const bytes = Buffer.from(`${JSON.stringify(value)}\n`);
  response.writeHead(200, { "content-type": "application/json", "content-length": bytes.length, connection: "close" });
  response.end(bytes);
}

function readJson(text: string): Record<string, unknown> | null {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return null;
  }
}

function utf8(bytes: Buffer): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}

/** In the file's last part, its samples. */
function withOneByteMore(file: Buffer): Buffer {
  const odd = Buffer.concat([file, Buffer.of(0)]);
  odd.writeUInt32LE(file.readUInt32LE(4) + 1, 4);
  odd.writeUInt32LE(file.readUInt32LE(40) + 1, 40);
  return odd;
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
