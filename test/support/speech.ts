// A gateway with speech for tests: the real engines, computed voices and models on a hub on loopback.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdir, symlink } from "node:fs/promises";
import { basename, join } from "node:path";
import type { TestContext } from "node:test";
import { type Pcm, parseWav } from "../../src/speech/wav.ts";
import { whisperServer } from "./engine.ts";
import { makeFolders } from "./folders.ts";
import { startTestGateway, type TestGateway } from "./gateway.ts";
import { type LoopbackHub, startLoopbackHub } from "./loopback-hub.ts";
import { codeOf } from "./own-calls.ts";
import { piperVoiceConfig, piperVoiceModel } from "./piper-voice.ts";
import { postWith } from "./requests.ts";
import { sherpa } from "./sherpa.ts";
import { manifestEntry } from "./voices.ts";
import { someSound } from "./whisper.ts";
import { whisperModel } from "./whisper-model.ts";

/** Told apart by the rate of their sound. */
export const lowVoice = "en_US-low-low";
export const highVoice = "en_US-high-low";
export const rates: Readonly<Record<string, number>> = { [lowVoice]: 16_000, [highVoice]: 22_050 };
export const spokenWords = "what the test model hears";
export const otherWords = "something else altogether";

/** Some minutes of sound, which take about a second to be made. */
export const longText = "One more sentence of a good length, to be read aloud. ".repeat(150);

export interface SpeechGateway extends TestGateway {
  readonly hub: LoopbackHub;
  /** Resolves with the sound; fails with what was answered instead. */
  say(voice: string, input?: string, rest?: object): Promise<Pcm>;
  engine(kind: "transcription" | "synthesis"): { readonly phase: string; readonly pid: number | null };
}

export interface SpeechOptions {
  /** Below `version: 1`. */
  readonly yaml?: string;
  readonly flags?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** Whether the embedded engine is installed in the state folder; default true. */
  readonly embedded?: boolean;
}

export const speechDocument = `speech: { transcription: { model: said.en }, synthesis: { voice: ${lowVoice} } }`;

export async function startSpeechGateway(t: TestContext, options: SpeechOptions = {}): Promise<SpeechGateway> {
  const hub = await startLoopbackHub(t);
  addSpeechRepos(hub);
  const folders = await makeFolders(t);
  const embedded = options.embedded ?? true;
  if (embedded) {
    const { packageDir } = await sherpa();
    await mkdir(join(folders.stateDir, "engines"));
    await symlink(packageDir, join(folders.stateDir, "engines", basename(packageDir)));
  }
  const gateway = await startTestGateway(t, {
    folders,
    yaml: `version: 1\n${options.yaml ?? speechDocument}\n`,
    environment: { HF_ENDPOINT: hub.endpoint, ...options.environment },
    // Whatever Python the machine has.
    flags: [
      "--whisper-server",
      await whisperServer(),
      ...(embedded ? ["--speech-engine", "embedded"] : []),
      ...(options.flags ?? []),
    ],
  });
  return {
    ...gateway,
    hub,
    say: async (voice, input = "Hello there.", rest = {}) => {
      const response = await fetch(`${gateway.url}/v1/audio/speech`, postWith({ voice, input, ...rest }));
      const bytes = new Uint8Array(await response.arrayBuffer());
      assert.equal(response.status, 200, Buffer.from(bytes).toString("utf8").slice(0, 500));
      assert.equal(response.headers.get("content-type"), "audio/wav");
      return parseWav(bytes);
    },
    engine: (kind) => gateway.gateway.status().speech[kind] ?? { phase: "off", pid: null },
  };
}

/** The voices and the models, and many more voices by name. */
export function addSpeechRepos(hub: LoopbackHub, voiceRates: Readonly<Record<string, number>> = rates): void {
  const files: Record<string, Buffer> = {};
  const manifest: Record<string, object> = {};
  for (const [voice, rate] of Object.entries(voiceRates)) {
    const entry = manifestEntry(voice);
    const own: Record<string, Buffer> = {};
    for (const path of Object.keys(entry["files"] as object)) {
      if (path.endsWith(".onnx")) own[path] = piperVoiceModel(rate);
      else if (path.endsWith(".json")) own[path] = Buffer.from(JSON.stringify(piperVoiceConfig(rate)));
      else own[path] = Buffer.from(modelCard(voice));
    }
    Object.assign(files, own);
    const facts = Object.entries(own).map(([path, bytes]) => [
      path,
      { size_bytes: bytes.length, md5_digest: createHash("md5").update(bytes).digest("hex") },
    ]);
    manifest[voice] = { ...entry, files: Object.fromEntries(facts) as object };
  }
  for (let i = 0; i < 60; i++) manifest[`de_DE-many${i}-low`] = manifestEntry(`de_DE-many${i}-low`);
  hub.addRepo("rhasspy/piper-voices", { files: { ...files, "voices.json": Buffer.from(JSON.stringify(manifest)) } });
  hub.addRepo("ggerganov/whisper.cpp", {
    files: {
      "ggml-said.en.bin": hears(spokenWords),
      "ggml-base.en.bin": hears(otherWords),
      "ggml-base.en-encoder.mlmodelc.zip": Buffer.from("an archive"),
      "ggml-tiny.bin": Buffer.from("tiny"),
      "README.md": Buffer.from("read me"),
    },
  });
}

const hearing = new Map<string, Buffer>();

/** A model that hears these words in everything: 8 MB, computed once for all gateways. */
function hears(words: string): Buffer {
  const bytes = hearing.get(words) ?? whisperModel({ words: words.split(" ") });
  hearing.set(words, bytes);
  return bytes;
}

/** In the form of the official ones. */
function modelCard(voice: string): string {
  const license = voice === lowVoice ? "CC BY-NC-SA 4.0" : "See URL";
  return (
    `# Model card for ${voice}\n\n* Language: en_US (English, United States)\n* Speakers: 1\n\n## Dataset\n\n` +
    `* URL: https://example.org/${voice}\n* License: ${license}\n\n## Training\n\nTrained from scratch.\n`
  );
}

/** A form with a sound, as clients send it. */
export function soundForm(sound: Buffer, fields: Readonly<Record<string, string>> = {}): RequestInit {
  const form = new FormData();
  form.set("file", new Blob([new Uint8Array(sound)], { type: "audio/wav" }), "sound.wav");
  for (const [name, value] of Object.entries(fields)) form.set(name, value);
  return { method: "POST", body: form };
}

/** What the gateway hears, or why it does not. */
export async function heard(gateway: SpeechGateway): Promise<string> {
  const answer = await gateway.json("/v1/audio/transcriptions", soundForm(someSound()));
  return answer.status === 200 ? (answer.body["text"] as string).trim() : `${answer.status} ${codeOf(answer)}`;
}

/** Asks for a voice whose download the hub holds after its first bytes. */
export async function holdFetch({ hub, url }: SpeechGateway, voice: string) {
  const [, name = "", quality = ""] = voice.split("-");
  const hold = hub.throttle(`en/en_US/${name}/${quality}/${voice}.onnx`, 100);
  const leave = new AbortController();
  const asked = fetch(`${url}/v1/audio/speech`, { ...postWith({ voice, input: "Hello" }), signal: leave.signal });
  await hold.reached;
  return { hold, leave, asked };
}
