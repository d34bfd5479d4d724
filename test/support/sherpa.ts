// The real sherpa-onnx for tests, and voices that it speaks.
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { installSherpa, locateSherpa, type SherpaInstallation } from "../../src/engines/install/sherpa.ts";
import { enginesDir } from "./engine.ts";
import { piperVoiceConfig, piperVoiceModel } from "./piper-voice.ts";

/** Where the package for the tests is; none is a failure and no skip. */
export async function sherpa(): Promise<SherpaInstallation> {
  const found = await locateSherpa(enginesDir);
  if (found) return found;
  throw new Error(`no sherpa-onnx in ${enginesDir}: install it first`);
}

/** Installs it where there is none: 57 MB. */
export async function provideSherpa(onProgress: (text: string) => void): Promise<void> {
  if ((await locateSherpa(enginesDir)) !== null) return;
  onProgress("installing sherpa-onnx for the tests");
  await installSherpa({
    enginesDir,
    environment: process.env,
    signal: new AbortController().signal,
    onProgress: ({ phase, detail }) => onProgress(`  ${phase}: ${detail}`),
  });
}

/** Writes a computed voice with its description; gives the path of the model. */
export async function writeVoice(
  voicesDir: string,
  voice: string,
  options: { readonly sampleRate?: number; readonly facts?: object; readonly speakers?: number } = {},
): Promise<string> {
  const { sampleRate = 16_000, speakers = 1, facts = { num_speakers: speakers } } = options;
  await mkdir(voicesDir, { recursive: true });
  const model = join(voicesDir, `${voice}.onnx`);
  await writeFile(model, piperVoiceModel(sampleRate, speakers));
  await writeFile(`${model}.json`, JSON.stringify(piperVoiceConfig(sampleRate, facts)));
  return model;
}
