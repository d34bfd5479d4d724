// Voices and transcription models: which are on the disk, and pulls of missing ones. Voices also get a flat folder of their own,
// as Piper needs it; the bytes stay in the cache and are linked from there.
import { readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { GatewayError } from "../../core/errors.ts";
import { parseJson } from "../../core/json.ts";
import { orCacheError } from "../../hub/errors.ts";
import { isModelFileName, transcriptionRepo } from "../../speech/transcription-models.ts";
import { parseVoiceConfig, type VoiceConfig } from "../../speech/voice-config.ts";
import { isVoiceId, type Voice, voiceRepo } from "../../speech/voices.ts";
import { makeFolder } from "../../state/folder.ts";
import { repoOfFolder, snapshotPath } from "../layout/layout.ts";
import type { PullResult } from "./fetch.ts";
import { linkFile } from "./link.ts";
import { type FilesPull, pullFiles } from "./pull.ts";

export interface CachedModelFile {
  /** The file's name: `ggml-base.en.bin`. */
  readonly name: string;
  /** Absolute path of the snapshot's entry. */
  readonly path: string;
  /** Bytes. */
  readonly size: number;
}

type SpeechPull = Omit<FilesPull, "repo" | "paths" | "name">;

/** Brings a transcription model into the cache; nothing is downloaded that is there. Throws like {@link pullFiles}. */
export async function pullTranscriptionModel(file: string, options: SpeechPull): Promise<PullResult> {
  if (!isModelFileName(file)) throw new GatewayError("invalid_request", `${JSON.stringify(file)} is no ggml model.`);
  try {
    return await pullFiles({ ...options, repo: transcriptionRepo, name: file, paths: [file] });
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== "hub_not_found") throw error;
    // Its hint differs from that of a repository that a person named.
    throw new GatewayError("transcription_model_not_found", error.message, { cause: error });
  }
}

/** Brings a voice with its description and license into the cache and links it into `voicesDir`. Throws like {@link pullFiles}. */
export async function pullVoice(
  { key, files }: Voice,
  { voicesDir, ...options }: SpeechPull & { readonly voicesDir: string },
): Promise<PullResult> {
  const paths = files.map(({ path }) => path);
  const pulled = await pullFiles({ ...options, repo: voiceRepo, name: key, paths });
  await orCacheError(key, async () => {
    await makeFolder(voicesDir);
    // The model last: a voice is there when its model is.
    const inOrder = pulled.files.toSorted(
      (a, b) => Number(a.path.endsWith(".onnx")) - Number(b.path.endsWith(".onnx")),
    );
    for (const { path } of inOrder) {
      const name = path.slice(path.lastIndexOf("/") + 1).normalize("NFC");
      const place = join(voicesDir, name.startsWith(`${key}.`) ? name : `${key}.${name}`);
      const source = resolve(snapshotPath(options.cacheDir, voiceRepo, pulled.commit, path));
      // In one step over what was there.
      await rm(`${place}.part`, { force: true });
      await linkFile(source, source, `${place}.part`);
      await rename(`${place}.part`, place);
    }
  });
  return pulled;
}

export async function cachedTranscriptionModel(cacheDir: string, name: string): Promise<CachedModelFile | null> {
  return (await cachedTranscriptionModels(cacheDir)).find((model) => model.name === name) ?? null;
}

/** The ggml models in the cache, of any repository, by name; the official repository's if two have one name. */
export async function cachedTranscriptionModels(cacheDir: string): Promise<CachedModelFile[]> {
  const found = new Map<string, CachedModelFile>();
  for (const folder of await namesIn(cacheDir)) {
    const repo = repoOfFolder(folder);
    if (repo === null) continue;
    const snapshots = join(cacheDir, folder, "snapshots");
    for (const commit of await namesIn(snapshots)) {
      for (const name of (await namesIn(join(snapshots, commit))).filter(isModelFileName)) {
        const path = join(snapshots, commit, name);
        const size = await sizeOf(path);
        if (size > 0 && (!found.has(name) || repo === transcriptionRepo)) found.set(name, { name, path, size });
      }
    }
  }
  return [...found.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** The voices that lie in a folder whole, from the hub or put there by hand. */
export async function cachedVoices(voicesDir: string): Promise<string[]> {
  const voices: string[] = [];
  for (const name of (await namesIn(voicesDir)).toSorted()) {
    const id = /^(.+)\.onnx$/.exec(name)?.[1] ?? "";
    const sizes = [await sizeOf(join(voicesDir, name)), await sizeOf(join(voicesDir, `${name}.json`))];
    if (isVoiceId(id) && !sizes.includes(0)) voices.push(id);
  }
  return voices;
}

/** Takes a voice out of the folder; what it links to stays. Throws `cache_unwritable`. */
export async function forgetVoice(voicesDir: string, voice: string): Promise<void> {
  const own = [`${voice}.onnx`, `${voice}.onnx.json`, `${voice}.MODEL_CARD`];
  const there = (await namesIn(voicesDir)).filter((name) => own.includes(name.normalize("NFC")));
  await orCacheError(voice, async () => {
    for (const name of there) await rm(join(voicesDir, name), { force: true });
  });
}

/** The description of a voice in the folder. Throws `engine_failed` if it is damaged or gone. */
export async function voiceConfigOf(voicesDir: string, voice: string): Promise<VoiceConfig> {
  const text = await readFile(join(voicesDir, `${voice}.onnx.json`), "utf8").catch(() => "");
  return parseVoiceConfig(parseJson(text), voice);
}

async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch(() => []);
}

/** 0 for an absent file, and for a link to nothing. */
async function sizeOf(path: string): Promise<number> {
  const entry = await stat(path).catch(() => null);
  return entry?.isFile() === true ? entry.size : 0;
}
