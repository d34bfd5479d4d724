// A process of its own that speaks Piper voices with sherpa-onnx, behind the HTTP interface of Piper's own server.
// Never imported by the gateway: sherpa-onnx ends its whole process on an invalid voice.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createRequire } from "node:module";
import { GatewayError, toGatewayError } from "../../core/errors.ts";
import { readAtMost } from "../../core/read-at-most.ts";
import { normalizedSamples, type Pcm, wavFile } from "../../speech/wav.ts";
import { basePathVariable, type SherpaServerSettings } from "./sherpa.ts";

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
  }): Promise<unknown>;
}

interface SherpaPackage {
  readonly OfflineTts: new (config: object) => Speech;
}

const bodyLimit = 64 * 1024;
const tooLarge = (): GatewayError => new GatewayError("body_too_large", `more than ${bodyLimit} bytes`);

const settings = JSON.parse(process.argv[2] ?? "") as SherpaServerSettings;
const basePath = process.env[basePathVariable] ?? "";
const { packageDir, model, tokens, dataDir, config, threads: numThreads } = settings;
const { noiseScale, noiseW: noiseScaleW, lengthScale } = config;
const vits = { model, tokens, dataDir, noiseScale, noiseScaleW, lengthScale };
const { OfflineTts } = createRequire(`${packageDir}/`)("sherpa-onnx-node") as SherpaPackage;
const speech = new OfflineTts({ model: { vits, numThreads, provider: "cpu", debug: false }, maxNumSentences: 1 });

createServer((request, response) => void answer(request, response)).listen(settings.port, "127.0.0.1");

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const route = `${request.method} ${request.url}`;
  if (route === `GET ${basePath}/info`) {
    const voice = { name: settings.voice, language: config.espeakVoice, num_speakers: speech.numSpeakers };
    return send(response, 200, "application/json", JSON.stringify({ voice }));
  }
  if (route !== `POST ${basePath}/synthesize`) return send(response, 404, "text/plain", "no such route");
  try {
    send(response, 200, "audio/wav", await synthesize(await readAtMost(request, bodyLimit, tooLarge)));
  } catch (error) {
    const { status, message } = toGatewayError(error);
    send(response, status, "text/plain", message);
  }
}

async function synthesize(body: Buffer): Promise<Uint8Array> {
  const wanted = JSON.parse(body.toString("utf8")) as { text: string; speaker_id?: number; length_scale?: number };
  const { text, speaker_id: speaker = 0, length_scale: lengthScale = 1 } = wanted;
  const parts: Pcm[] = [];
  await speech.generateAsync({
    text,
    sid: Math.min(Math.max(0, speaker), speech.numSpeakers - 1),
    speed: 1 / lengthScale,
    enableExternalBuffer: false,
    onProgress: ({ samples }) => {
      // As loud as Piper makes each sentence.
      parts.push({ sampleRate: speech.sampleRate, channels: 1, samples: normalizedSamples(samples) });
      return 1;
    },
  });
  if (parts.every(({ samples }) => samples.length === 0))
    throw new GatewayError("invalid_request", "the text has no sounds");
  return wavFile(parts);
}

function send(response: ServerResponse, status: number, type: string, body: string | Uint8Array): void {
  const bytes = Buffer.from(body);
  response.writeHead(status, { "content-type": type, "content-length": bytes.length, connection: "close" });
  response.end(bytes);
}
