// Voices and transcription models from the hub: the official lists, what is on disk, and bringing what is missing.
// Voices also get a flat folder of their own, as Piper wants them; the bytes stay in the cache and are linked from there.
import { copyFile, lstat, readdir, readFile, rename, rm, stat, symlink } from "node:fs/promises";
import { join, resolve } from "node:path";
import { GatewayError, systemCode, toGatewayError } from "../core/errors.ts";
import { parseJson, writeAtomic } from "../desired/atomic-file.ts";
import { makeFolder } from "../desired/folder.ts";
import { isModelFileName, type ModelFile, transcriptionRepo } from "../speech/transcription-models.ts";
import { parseVoiceConfig, type VoiceConfig } from "../speech/voice-config.ts";
import { isVoiceId, parseManifest, type Voice, voiceRepo } from "../speech/voices.ts";
import type { HubClient } from "./client.ts";
import { cacheError } from "./errors.ts";
import { repoOfFolder } from "./layout.ts";
import { type FilesPull, type PulledFiles, pullFiles } from "./pull-files.ts";
import { readText } from "./read-text.ts";

const manifestPath = "voices.json";
/** 173 voices are 250 kB. */
const manifestLimit = 16 * 1024 * 1024;

export interface SpeechLists {
  /** The official voices. Throws `hub_*` where the hub cannot be asked and never was. */
  voices(signal: AbortSignal): Promise<readonly Voice[]>;
  /** All files of the transcription models' repository. Throws likewise. */
  modelFiles(signal: AbortSignal): Promise<readonly ModelFile[]>;
}

export interface CachedModelFile {
  /** The file's name: `ggml-base.en.bin`. */
  readonly name: string;
  /** Absolute path of the snapshot's entry. */
  readonly path: string;
  /** Bytes. */
  readonly size: number;
  readonly repo: string;
}

/**
 * Asks the hub at most every `freshMs`. Both lists are kept in `stateDir`, so that a search also works while the hub cannot be
 * reached.
 */
export function createSpeechLists(options: {
  readonly client: HubClient;
  readonly stateDir: string;
  readonly freshMs: number;
  readonly now: () => number;
}): SpeechLists {
  const { client } = options;
  const voices = keptList(options, "voices.json", readVoices, async (signal) => {
    const { body } = await client.openFile(voiceRepo, "main", manifestPath, { from: 0, signal });
    const text = await readText(body, manifestLimit);
    if (text === null) throw new GatewayError("hub_unreachable", "The hub's list of voices has no end.");
    return text;
  });
  const modelFiles = keptList(options, "transcription-models.json", readModelFiles, async (signal) => {
    const files = await client.listTree(transcriptionRepo, "main", signal);
    return JSON.stringify(files.map(({ path, size }) => ({ path, size })));
  });
  return { voices, modelFiles };
}

function keptList<T>(
  options: { readonly stateDir: string; readonly freshMs: number; readonly now: () => number },
  name: string,
  read: (text: string) => readonly T[] | null,
  fetchText: (signal: AbortSignal) => Promise<string>,
): (signal: AbortSignal) => Promise<readonly T[]> {
  const path = join(options.stateDir, name);
  let known: readonly T[] | null = null;
  let askedAt = Number.NEGATIVE_INFINITY;
  return async (signal) => {
    if (known && options.now() - askedAt < options.freshMs) return known;
    try {
      const text = await fetchText(signal);
      const list = read(text);
      if (!list) throw new GatewayError("hub_unreachable", `The hub's ${name} is no such list.`);
      known = list;
      askedAt = options.now();
      // Only for a time without the hub: a folder that cannot be written is reported by those who depend on it.
      await writeAtomic(path, text).catch(() => undefined);
      return list;
    } catch (error) {
      const failure = toGatewayError(error);
      if (failure.code === "cancelled") throw failure;
      known ??= read(await readFile(path, "utf8").catch(() => ""));
      if (known) return known;
      throw failure;
    }
  };
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
    // What to do is another thing than with a repository that somebody named.
    throw new GatewayError("transcription_model_not_found", error.message, { cause: error });
  }
}

/** One of {@link cachedTranscriptionModels}, found without a look into each repository where the official one has it. */
export async function cachedTranscriptionModel(cacheDir: string, name: string): Promise<CachedModelFile | null> {
  const named = (models: readonly CachedModelFile[]): CachedModelFile | null =>
    models.find((model) => model.name === name) ?? null;
  return (
    named(await cachedTranscriptionModels(cacheDir, (repo) => repo === transcriptionRepo)) ??
    named(await cachedTranscriptionModels(cacheDir))
  );
}

/** The ggml models in the cache, of any repository, by name; the official repository's where two have one name. */
export async function cachedTranscriptionModels(
  cacheDir: string,
  isOfInterest: (repo: string) => boolean = () => true,
): Promise<CachedModelFile[]> {
  const found = new Map<string, CachedModelFile>();
  for (const folder of await namesIn(cacheDir)) {
    const repo = repoOfFolder(folder);
    if (repo === null || !isOfInterest(repo)) continue;
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

/** Brings a voice with its description and licence into the cache and links it into `voicesDir`. Throws like {@link pullFiles}. */
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
  try {
    await makeFolder(voicesDir);
    // The model last: a voice is there when its model is.
    const inOrder = pulled.files.toSorted(
      (a, b) => Number(a.path.endsWith(".onnx")) - Number(b.path.endsWith(".onnx")),
    );
    for (const { path, place } of inOrder) {
      const name = path.slice(path.lastIndexOf("/") + 1).normalize("NFC");
      await put(place, join(voicesDir, name.startsWith(`${voice.key}.`) ? name : `${voice.key}.${name}`));
    }
  } catch (error) {
    throw cacheError(error, voice.key);
  }
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
  try {
    for (const name of there) await rm(join(voicesDir, name), { force: true });
  } catch (error) {
    throw cacheError(error, voice);
  }
  return there.length;
}

/** What a voice in the folder says about itself. Throws `engine_failed` where that is damaged or gone. */
export async function voiceConfigOf(voicesDir: string, voice: string): Promise<VoiceConfig> {
  const text = await readFile(join(voicesDir, `${voice}.onnx.json`), "utf8").catch(() => "");
  return parseVoiceConfig(parseJson(text), voice);
}

/** A link where the system has them, in one step over what was there. */
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

function readVoices(text: string): readonly Voice[] | null {
  return parseManifest(parseJson(text))?.voices ?? null;
}

function readModelFiles(text: string): readonly ModelFile[] | null {
  const value = parseJson(text);
  if (!Array.isArray(value)) return null;
  return value.filter(
    (entry: Partial<ModelFile> | null): entry is ModelFile =>
      typeof entry?.path === "string" && typeof entry.size === "number",
  );
}

async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch(() => []);
}

/** 0 for what is not there, a link to nothing among it. */
async function sizeOf(path: string): Promise<number> {
  const entry = await stat(path).catch(() => null);
  return entry?.isFile() === true ? entry.size : 0;
}
