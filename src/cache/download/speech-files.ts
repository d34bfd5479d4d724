// Voices and transcription models: which are on the disk, and pulls of missing ones. Voices also get a flat folder of their own,
// as Piper needs it; the bytes stay in the cache and are linked from there.
import { copyFile, lstat, readdir, readFile, rename, rm, stat, symlink } from "node:fs/promises";
import { join, resolve } from "node:path";
import { GatewayError, systemCode } from "../../core/errors.ts";
import { orCacheError } from "../../hub/errors.ts";
import { isModelFileName, transcriptionRepo } from "../../speech/transcription-models.ts";
import { parseVoiceConfig, type VoiceConfig } from "../../speech/voice-config.ts";
import { isVoiceId, localVoice, type Voice, voiceRepo } from "../../speech/voices.ts";
import { parseJson } from "../../state/atomic-file.ts";
import { makeFolder } from "../../state/folder.ts";
import { repoOfFolder } from "../layout/layout.ts";
import { type FilesPull, type PulledFiles, pullFiles } from "./pull.ts";

export interface CachedModelFile {
  /** The file's name: `ggml-base.en.bin`. */
  readonly name: string;
  /** Absolute path of the snapshot's entry. */
  readonly path: string;
  /** Bytes. */
  readonly size: number;
  readonly repo: string;
}

/** Brings a transcription model into the cache; nothing is downloaded that is there. Throws like {@link pullFiles}. */
export async function pullTranscriptionModel(
  file: string,
  options: Omit<FilesPull, "repo" | "paths" | "name">,
): Promise<PulledFiles> {
  if (!isModelFileName(file)) throw new GatewayError("invalid_request", `${JSON.stringify(file)} is no ggml model.`);
  try {
    return await pullFiles({ ...options, repo: transcriptionRepo, name: file, paths: [file] });
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== "hub_not_found") throw error;
    // Its hint differs from that of a repository that a person named.
    throw new GatewayError("transcription_model_not_found", error.message, { cause: error });
  }
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
        if (size > 0 && (!found.has(name) || repo === transcriptionRepo)) found.set(name, { name, path, size, repo });
      }
    }
  }
  return [...found.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** Brings a voice with its description and license into the cache and links it into `voicesDir`. Throws like {@link pullFiles}. */
export async function pullVoice(
  voice: Voice,
  options: Omit<FilesPull, "repo" | "paths" | "name"> & { readonly voicesDir: string },
): Promise<PulledFiles> {
  const { voicesDir } = options;
  const pulled = await pullFiles({
    ...options,
    repo: voiceRepo,
    name: voice.key,
    paths: voice.files.map(({ path }) => path),
  });
  await orCacheError(voice.key, async () => {
    await makeFolder(voicesDir);
    // The model last: a voice is there when its model is.
    const inOrder = pulled.files.toSorted(
      (a, b) => Number(a.path.endsWith(".onnx")) - Number(b.path.endsWith(".onnx")),
    );
    for (const { path, place } of inOrder) {
      const name = path.slice(path.lastIndexOf("/") + 1).normalize("NFC");
      await put(place, join(voicesDir, name.startsWith(`${voice.key}.`) ? name : `${voice.key}.${name}`));
    }
  });
  return pulled;
}

/** Ids of the voices that lie in a folder whole, by name: from the hub or put there by hand. */
export async function cachedVoices(voicesDir: string): Promise<string[]> {
  const names = await namesIn(voicesDir);
  const ids: string[] = [];
  for (const name of names) {
    const id = /^(.+)\.onnx$/.exec(name)?.[1];
    if (id === undefined || !isVoiceId(id)) continue;
    if ((await sizeOf(join(voicesDir, name))) > 0 && (await sizeOf(join(voicesDir, `${name}.json`))) > 0) ids.push(id);
  }
  return ids.toSorted();
}

/** Of the voices in the folder those that are files of their own, put there by hand, with their bytes. */
export async function plainVoices(voicesDir: string): Promise<Map<string, number>> {
  const found = new Map<string, number>();
  for (const id of await cachedVoices(voicesDir)) {
    const entry = await lstat(join(voicesDir, `${id}.onnx`)).catch(() => null);
    if (entry?.isFile() === true) found.set(id, entry.size + (await sizeOf(join(voicesDir, `${id}.onnx.json`))));
  }
  return found;
}

/** Takes a voice out of the folder; what it links to stays. Answers with how many names went. Throws `cache_unwritable`. */
export async function forgetVoice(voicesDir: string, voice: string): Promise<number> {
  const own = [`${voice}.onnx`, `${voice}.onnx.json`, `${voice}.MODEL_CARD`];
  const there = (await namesIn(voicesDir)).filter((name) => own.includes(name.normalize("NFC")));
  await orCacheError(voice, async () => {
    for (const name of there) await rm(join(voicesDir, name), { force: true });
  });
  return there.length;
}

/** The voices in the folder with their descriptions; one with a damaged description is left out. */
export async function localVoices(voicesDir: string): Promise<Voice[]> {
  const voices: Voice[] = [];
  for (const id of await cachedVoices(voicesDir)) {
    const model = join(voicesDir, `${id}.onnx`);
    const description = `${model}.json`;
    const config = parseJson(await readFile(description, "utf8").catch(() => ""));
    const voice = localVoice(id, config, [await sizeOf(model), await sizeOf(description)]);
    if (voice) voices.push(voice);
  }
  return voices;
}

/** Whether a voice was put into the folder by hand without its description. */
export async function lacksDescription(voicesDir: string, voice: string): Promise<boolean> {
  const model = join(voicesDir, `${voice}.onnx`);
  const entry = isVoiceId(voice) ? await lstat(model).catch(() => null) : null;
  return entry?.isFile() === true && (await sizeOf(`${model}.json`)) === 0;
}

/** The description of a voice in the folder. Throws `engine_failed` if it is damaged or gone. */
export async function voiceConfigOf(voicesDir: string, voice: string): Promise<VoiceConfig> {
  const text = await readFile(join(voicesDir, `${voice}.onnx.json`), "utf8").catch(() => "");
  return parseVoiceConfig(parseJson(text), voice);
}

/** A link if the system has them, in one step over what was there. */
async function put(source: string, target: string): Promise<void> {
  const temporary = `${target}.part`;
  await rm(temporary, { force: true });
  try {
    await symlink(resolve(source), temporary);
  } catch (error) {
    if (!["EPERM", "ENOSYS", "ENOTSUP", "EOPNOTSUPP"].includes(systemCode(error) ?? "")) throw error;
    await copyFile(source, temporary);
  }
  await rename(temporary, target);
}

async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch(() => []);
}

/** 0 for an absent file, and for a link to nothing. */
async function sizeOf(path: string): Promise<number> {
  const entry = await stat(path).catch(() => null);
  return entry?.isFile() === true ? entry.size : 0;
}
