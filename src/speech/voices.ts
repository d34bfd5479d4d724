// The official voice manifest: read defensively, searched, and what a voice is made of; how clients name one. Pure.
import { GatewayError } from "../core/errors.ts";
import { isJsonObject } from "../core/json.ts";

/** As the voice search answers: these fields and no others. */
export interface VoiceEntry {
  /** The voice's id: `en_US-lessac-medium`. */
  readonly key: string;
  /** The speaker's name: `lessac`. */
  readonly name: string;
  readonly languageCode: string;
  /** In English. */
  readonly languageName: string;
  readonly country: string;
  readonly quality: string;
  readonly numSpeakers: number;
  /** Of all its files together. */
  readonly sizeBytes: number;
}

export interface VoiceFile {
  /** Inside the repository, as the manifest names it. */
  readonly path: string;
  readonly sizeBytes: number;
}

export interface Voice extends VoiceEntry {
  readonly languageNative: string;
  /** Names of the speakers of a voice that has several, with their numbers. */
  readonly speakers: ReadonlyMap<string, number>;
  /** The model (`.onnx`), its description (`.onnx.json`) and, where there is one, the card with the license. */
  readonly files: readonly VoiceFile[];
}

/** The official repository. */
export const voiceRepo = "rhasspy/piper-voices";

const searchLimit = 50;

/**
 * Letters of any language (`pt_PT-tugão-medium` is an official voice), digits, `_` and `-`: an id becomes a file name here
 * and a path in Piper's server, which follows `../` to any voice on the disk.
 */
export function isVoiceId(text: string): boolean {
  return /^[\p{L}\p{N}][\p{L}\p{M}\p{N}_-]{0,99}$/u.test(text);
}

/** By id, in its order. Null for what is no manifest, or has not one voice; an entry that is damaged is left out. */
export function parseManifest(value: unknown): readonly Voice[] | null {
  const entries = isJsonObject(value) ? Object.entries(value) : [];
  const voices = entries.flatMap(([key, entry]) => readVoice(key.normalize("NFC"), entry) ?? []);
  return voices.length === 0 ? null : voices.toSorted((a, b) => (a.key < b.key ? -1 : 1));
}

/** At most 50 voices whose id, speaker or language contains the text, ignoring case; an empty text matches all. */
export function searchVoices(voices: readonly Voice[], query: string): VoiceEntry[] {
  const wanted = fold(query.trim());
  return voices
    .filter((voice) =>
      [voice.key, voice.name, voice.languageCode, voice.languageName, voice.languageNative].some((text) =>
        fold(text).includes(wanted),
      ),
    )
    .slice(0, searchLimit)
    .map(entryOf);
}

/** Of some ids the one that a name means: the same, or the same ignoring case and how its letters are put together. */
export function findVoiceId(ids: readonly string[], name: string): string | null {
  return ids.find((id) => id === name) ?? ids.find((id) => fold(id) === fold(name)) ?? null;
}

/** A client's `voice`: an id, or an id and a speaker (`en_GB-vctk-medium:p239`). Whether there is such a voice is not checked. */
export function splitVoiceName(name: string): { readonly voice: string; readonly speaker: string | null } {
  const trimmed = name.trim().normalize("NFC");
  const colon = trimmed.indexOf(":");
  return colon < 0
    ? { voice: trimmed, speaker: null }
    : { voice: trimmed.slice(0, colon), speaker: trimmed.slice(colon + 1) };
}

/** As {@link findVoiceId}; throws `voice_not_found`. */
export function requireVoice(voices: readonly Voice[], name: string): Voice {
  const found = voices.find(({ key }) => fold(key) === fold(name));
  if (found) return found;
  throw new GatewayError("voice_not_found", `there is no voice ${JSON.stringify(name.slice(0, 120))}`, {
    param: "voice",
  });
}

function entryOf(voice: Voice): VoiceEntry {
  const { key, name, languageCode, languageName, country, quality, numSpeakers, sizeBytes } = voice;
  return { key, name, languageCode, languageName, country, quality, numSpeakers, sizeBytes };
}

function readVoice(key: string, entry: unknown): Voice | null {
  if (!isVoiceId(key) || !isJsonObject(entry) || !isJsonObject(entry["language"]) || !isJsonObject(entry["files"]))
    return null;
  const language = entry["language"];
  const files = Object.entries(entry["files"]).map(([path, facts]) => readFile(path, facts));
  const whole = files.filter((file) => file !== null);
  // A voice is these two; with one of them damaged there is nothing to download.
  const named = new Set(whole.map(({ path }) => path.slice(path.lastIndexOf("/") + 1).normalize("NFC")));
  if (whole.length < files.length || !named.has(`${key}.onnx`) || !named.has(`${key}.onnx.json`)) return null;
  return {
    key,
    name: text(entry["name"]),
    languageCode: text(language["code"]),
    languageName: text(language["name_english"]),
    languageNative: text(language["name_native"]),
    country: text(language["country_english"]),
    quality: text(entry["quality"]),
    numSpeakers: count(entry["num_speakers"]) ?? 1,
    sizeBytes: whole.reduce((sum, file) => sum + file.sizeBytes, 0),
    speakers: numbersIn(entry["speaker_id_map"]),
    files: whole,
  };
}

function readFile(path: string, facts: unknown): VoiceFile | null {
  if (!isJsonObject(facts) || !isSafePath(path)) return null;
  const sizeBytes = count(facts["size_bytes"]);
  return sizeBytes === null ? null : { path, sizeBytes };
}

/** A path that stays below the folder it is put into, on every system. */
function isSafePath(path: string): boolean {
  return path.length < 500 && path.split("/").every((part) => /^[\p{L}\p{M}\p{N}_-][\p{L}\p{M}\p{N}._-]*$/u.test(part));
}

/** The entries of an object that have a number, by `read`: a `speaker_id_map`, for one. */
export function numbersIn(
  value: unknown,
  read: (entry: unknown) => number | null = count,
): ReadonlyMap<string, number> {
  const numbers = new Map<string, number>();
  for (const [name, entry] of isJsonObject(value) ? Object.entries(value) : []) {
    const number = read(entry);
    if (number !== null) numbers.set(name, number);
  }
  return numbers;
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** A whole number from 0 up, or null. */
export function count(value: unknown): number | null {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : null;
}

function fold(text: string): string {
  return text.normalize("NFC").toLowerCase();
}
