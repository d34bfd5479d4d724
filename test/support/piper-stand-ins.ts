// Piper's HTTP server in its three generations, answer for answer as the real ones: the wrong content type, pages instead of
// reasons, wrong voices instead of errors. Its sound is a tone for each voice, the longer the text the longer.
import { once } from "node:events";
import { chmod, readFile, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { PiperGeneration } from "../../src/speech/piper-http.ts";
import { wavFile } from "../../src/speech/wav.ts";
import { cleanUp } from "./clean-up.ts";

export interface StandInOptions {
  readonly generation: PiperGeneration;
  /** The voice it was started with, and further ones: name and the tone that it speaks in, in Hz. */
  readonly voices: Readonly<Record<string, number>>;
  readonly sampleRate?: number;
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
function voiceDescription(sampleRate: number): object {
  return {
    audio: { sample_rate: sampleRate, quality: "medium" },
    espeak: { voice: "en-us" },
    inference: { noise_scale: 0.667, length_scale: 1, noise_w: 0.8 },
    num_speakers: 1,
    num_symbols: 256,
    phoneme_id_map: { _: [0], "^": [1], $: [2] },
    phoneme_type: "espeak",
    speaker_id_map: {},
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
  const { generation, voices, sampleRate = 22_050, work = { startMs: 0, msPerCharacter: 0 } } = options;
  const requests: string[] = [];
  const spoken: string[] = [];
  const defaultVoice = Object.keys(voices)[0] ?? "";
  let working = 0;
  let most = 0;
  let held: Promise<void> = Promise.resolve();

  async function synthesize(request: IncomingMessage, response: ServerResponse): Promise<void> {
    working++;
    most = Math.max(most, working);
    try {
      const body = await bodyOf(request);
      const wanted = generation === "text" ? { text: body } : readJson(body);
      const text = typeof wanted?.["text"] === "string" ? wanted["text"] : "";
      const sayable = /[\p{L}\p{N}]/u.test(text);
      if (!wanted || text.trim() === "" || (!sayable && generation !== "text") || badNumbers(wanted)) {
        return send(response, 500, page("500", "Internal Server Error", serverErrorText));
      }
      spoken.push(text);
      await held;
      await delay(work.startMs + text.length * work.msPerCharacter);
      // An unknown voice is the default one, without a word.
      const hertz = voices[String(wanted["voice"])] ?? voices[defaultVoice] ?? 440;
      const length = (sayable ? text.length : 1) * secondsPerCharacter * Number(wanted["length_scale"] ?? 1);
      const samples = Int16Array.from({ length: Math.round(length * sampleRate) }, (_, i) =>
        Math.round(32_767 * Math.cos((2 * Math.PI * hertz * i) / sampleRate)),
      );
      send(response, 200, Buffer.from(wavFile([{ sampleRate, channels: 1, samples }])));
    } finally {
      working--;
    }
  }

  function describe(): object {
    return Object.fromEntries(
      Object.keys(voices)
        .toSorted()
        // Python's rstrip takes letters off, not an ending.
        .map((name) => [`${name}.onnx.json`.replace(/[.onxjs]+$/, ""), voiceDescription(sampleRate)]),
    );
  }

  const routes: Readonly<Record<PiperGeneration, Readonly<Record<string, Route>>>> = {
    synthesize: {
      "GET /": (_, response) => send(response, 200, "<!DOCTYPE html>\n<html><title>Piper</title></html>\n"),
      "GET /info": (_, response) =>
        sendJson(response, {
          voice: { name: defaultVoice, language: "en-us", num_speakers: 1 },
          last:
            spoken.length === 0
              ? null
              : { text: spoken.at(-1), synthesize_seconds: 0.01, phonemes: [], alignments: [] },
        }),
      "GET /voices": (_, response) => sendJson(response, describe()),
      "POST /synthesize": synthesize,
    },
    json: { "GET /voices": (_, response) => sendJson(response, describe()), "POST /": synthesize },
    text: {
      "GET /": (_, response) => send(response, 500, page("500", "Internal Server Error", serverErrorText)),
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

function badNumbers(wanted: Record<string, unknown>): boolean {
  return (
    wanted["length_scale"] === null || (wanted["speaker_id"] !== undefined && typeof wanted["speaker_id"] !== "number")
  );
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
}
