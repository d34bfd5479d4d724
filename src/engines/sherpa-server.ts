// A process of its own that speaks Piper voices with sherpa-onnx, behind the HTTP interface of Piper's own server.
// Never imported by the gateway: sherpa-onnx ends its whole process over a voice that it does not like.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createRequire } from "node:module";
import { GatewayError, toGatewayError } from "../core/errors.ts";
import { createTurns } from "../speech/turns.ts";
import { isRecord } from "../speech/voices.ts";
import { normalisedSamples, type Pcm, softenEdges, wavFile } from "../speech/wav.ts";
import { basePathVariable, type SherpaServerSettings } from "./sherpa.ts";

interface Sound {
  readonly samples: Float32Array;
  readonly sampleRate: number;
}

interface Speech {
  readonly sampleRate: number;
  readonly numSpeakers: number;
  generateAsync(wanted: {
    readonly text: string;
    readonly sid: number;
    readonly speed: number;
    /** Memory that sherpa-onnx owns would be unsafe in Electron, and is no faster here. */
    readonly enableExternalBuffer: boolean;
    /** For each sentence; 0 stops. */
    readonly onProgress: (part: { readonly samples: Float32Array }) => number;
  }): Promise<Sound>;
}

interface SherpaPackage {
  readonly OfflineTts: new (config: object) => Speech;
}

const bodyLimit = 64 * 1024;
/** Enough for a line of pieces; more would be a caller that does not wait. */
const waitingLimit = 64;

const settings = JSON.parse(process.argv[2] ?? "") as SherpaServerSettings;
const basePath = process.env[basePathVariable] ?? "";
const speech = load(settings);
const turns = createTurns({ width: 1, depth: waitingLimit, what: "pieces of speech" });

createServer((request, response) => void answer(request, response)).listen(settings.port, "127.0.0.1");

function load({ packageDir, model, tokens, dataDir, noiseScale, noiseW, lengthScale, threads }: SherpaServerSettings) {
  const { OfflineTts } = createRequire(`${packageDir}/`)("sherpa-onnx-node") as SherpaPackage;
  const vits = { model, tokens, dataDir, noiseScale, noiseScaleW: noiseW, lengthScale };
  return new OfflineTts({ model: { vits, numThreads: threads, provider: "cpu", debug: false }, maxNumSentences: 1 });
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const route = `${request.method} ${request.url}`;
  if (route === `GET ${basePath}/info`) {
    const voice = { name: settings.voice, language: settings.language, num_speakers: speech.numSpeakers };
    return send(response, 200, "application/json", JSON.stringify({ voice }));
  }
  if (route !== `POST ${basePath}/synthesize`) return send(response, 404, "text/plain", "no such route");
  const left = new AbortController();
  response.on("close", () => left.abort());
  try {
    send(response, 200, "audio/wav", await synthesize(await readText(request), left.signal));
  } catch (error) {
    const { status, message } = toGatewayError(error);
    if (!response.destroyed) send(response, status, "text/plain", message);
  }
}

async function synthesize(body: string, left: AbortSignal): Promise<Uint8Array> {
  const wanted: unknown = JSON.parse(body);
  const { text, speaker_id: speaker = 0, length_scale: lengthScale = 1 } = isRecord(wanted) ? wanted : {};
  if (typeof text !== "string" || typeof speaker !== "number" || typeof lengthScale !== "number" || lengthScale <= 0)
    throw new GatewayError("invalid_request", "text, speaker_id and length_scale are text, number and number");
  const over = await turns.take(left);
  try {
    const parts: Pcm[] = [];
    await speech.generateAsync({
      text,
      sid: Math.min(Math.max(0, speaker), speech.numSpeakers - 1),
      speed: 1 / lengthScale,
      enableExternalBuffer: false,
      onProgress: ({ samples }) => {
        // As loud as Piper makes each sentence.
        parts.push(softenEdges({ sampleRate: speech.sampleRate, channels: 1, samples: normalisedSamples(samples) }));
        return left.aborted ? 0 : 1;
      },
    });
    if (parts.every(({ samples }) => samples.length === 0))
      throw new GatewayError("invalid_request", "the text has no sounds");
    return wavFile(parts);
  } finally {
    over();
  }
}

async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > bodyLimit) throw new GatewayError("body_too_large", `more than ${bodyLimit} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function send(response: ServerResponse, status: number, type: string, body: string | Uint8Array): void {
  const bytes = Buffer.from(body);
  response.writeHead(status, { "content-type": type, "content-length": bytes.length, connection: "close" });
  response.end(bytes);
}
