// inventory.json: what this gateway pulled or imported, models and files of speech, and so may delete.
import { join } from "node:path";
import { equalJson, isJsonObject, type Json, type JsonObject } from "../../core/merge-patch.ts";
import { createSerial } from "../../core/serial.ts";
import { type FormerRevision, type InventoryEntry, type SpeechKind, speechKinds } from "../../plan/observed.ts";
import { leftAtOf } from "../../plan/removals.ts";
import { readJsonState } from "../../state/atomic-file.ts";
import { plainStateFiles, type StateFiles } from "../../state/state-folder.ts";
import type { Origin } from "../download/origin.ts";

/** A voice by its id, or a transcription model by its file's name. */
export interface SpeechEntry {
  readonly kind: SpeechKind;
  readonly name: string;
}

export interface Inventory {
  entries(): readonly InventoryEntry[];
  get(id: string): InventoryEntry | undefined;
  /** Who stored a blob of that repository, by its name, as far as an entry or what it was before says. */
  originIn(repo: string): (blob: string) => Origin | undefined;
  /** What the entry was before is remembered with it: those files are ours too. */
  put(entry: InventoryEntry): Promise<void>;
  remove(id: string): Promise<void>;
  /** Keeps of the entries of a repository what `remember` answers; null: nothing. */
  review(repo: string, remember: (entry: InventoryEntry) => InventoryEntry | null): Promise<void>;
  /** Remembers which entries the document marks `keep`, so that they stay when they leave it. */
  noteKept(ids: ReadonlySet<string>, unkept: ReadonlySet<string>): Promise<void>;
  /** Remembers since when (ms) the document has not named entries: all but these. */
  noteLeft(named: ReadonlySet<string>, at: number): Promise<void>;
  hasSpeech(entry: SpeechEntry): boolean;
  addSpeech(entry: SpeechEntry): Promise<void>;
  removeSpeech(entry: SpeechEntry): Promise<void>;
  /** Where the model cache was when it had models; null: never noted. */
  place(): string | null;
  notePlace(place: string): Promise<void>;
}

export async function openInventory(
  stateDir: string,
  warn: (message: string, fields: object) => void,
  files: StateFiles = plainStateFiles,
): Promise<Inventory> {
  const path = join(stateDir, "inventory.json");
  let content = (await readJsonState(path, readContent, (aside) => {
    warn("the inventory was unreadable and was set aside", { path: aside });
    files.noteAside(aside);
  })) ?? { entries: [], speech: [], place: null };
  const serial = createSerial();

  function save(change: (content: Content) => Content): Promise<void> {
    return serial(async () => {
      const next = change(content);
      if (equalJson(toJson(next), toJson(content))) return;
      await files.write(path, textOf(next));
      content = next;
    });
  }

  function saveEntries(change: (entries: readonly InventoryEntry[]) => readonly InventoryEntry[]): Promise<void> {
    return save((before) => ({ ...before, entries: change(before.entries) }));
  }

  function saveSpeech({ kind, name }: SpeechEntry, more: readonly SpeechEntry[]): Promise<void> {
    return save((before) => {
      const others = before.speech.filter((other) => other.kind !== kind || other.name !== name);
      return { ...before, speech: [...others, ...more] };
    });
  }

  return {
    place: () => content.place,
    notePlace: (place) => save((before) => ({ ...before, place })),
    hasSpeech: ({ kind, name }) => content.speech.some((other) => other.kind === kind && other.name === name),
    addSpeech: (entry) => saveSpeech(entry, [entry]),
    removeSpeech: (entry) => saveSpeech(entry, []),
    entries: () => content.entries,
    get: (id) => content.entries.find((entry) => entry.id === id),
    originIn: (repo) => {
      const files = content.entries
        .filter((entry) => entry.repo === repo)
        .flatMap((entry) => [...entry.files, ...(entry.former ?? []).flatMap((revision) => revision.files)]);
      const all = new Set(files.map(({ blob }) => blob));
      const stored = new Set(files.flatMap(({ blob, found }) => (found ? [] : [blob])));
      return (blob) => (stored.has(blob) ? "stored" : all.has(blob) ? "found" : undefined);
    },
    put: (entry) =>
      saveEntries((all) => {
        const before = all.find((other) => other.id === entry.id);
        return [...all.filter((other) => other !== before), before ? withFormer(entry, before) : entry];
      }),
    remove: (id) => saveEntries((all) => all.filter((entry) => entry.id !== id)),
    review: (repo, remember) =>
      saveEntries((all) => all.flatMap((entry) => (entry.repo === repo ? (remember(entry) ?? []) : entry))),
    noteKept: (ids, unkept) =>
      saveEntries((all) =>
        all.map((entry) => ({ ...entry, keep: ids.has(entry.id) || (entry.keep && !unkept.has(entry.id)) })),
      ),
    noteLeft: (named, at) => saveEntries((all) => all.map((entry) => withLeft(entry, !named.has(entry.id), at))),
  };
}

/** A time to come is of a clock that was wrong: the model would stay until then. */
function withLeft(entry: InventoryEntry, hasLeft: boolean, at: number): InventoryEntry {
  const { leftAt: before, ...rest } = entry;
  if (!hasLeft) return before === undefined ? entry : rest;
  const since = leftAtOf(entry);
  return since !== null && since <= at ? entry : { ...entry, leftAt: new Date(at).toISOString() };
}

/** More than so many revisions back nobody's disk holds. */
const mostFormer = 20;

function withFormer(entry: InventoryEntry, { commit, files, former = [] }: InventoryEntry): InventoryEntry {
  const same = (revision: FormerRevision): boolean =>
    revision.commit === entry.commit && equalJson(toJson(revision.files), toJson(entry.files));
  const earlier = [...former, { commit, files }].filter((revision) => !same(revision)).slice(-mostFormer);
  return earlier.length === 0 ? entry : { ...entry, former: earlier };
}

interface Content {
  readonly entries: readonly InventoryEntry[];
  readonly speech: readonly SpeechEntry[];
  readonly place: string | null;
}

function textOf({ entries, speech, place }: Content): string {
  const content = { models: entries, speech, ...(place === null ? {} : { cache: place }) };
  return `${JSON.stringify(content, null, 2)}\n`;
}

function readContent(value: unknown): Content | null {
  const entries = readEntries(value);
  if (!entries || !isJsonObject(value)) return null;
  const { speech = [], cache } = value;
  if (!Array.isArray(speech) || !speech.every(isSpeechEntry)) return null;
  return { entries, speech, place: typeof cache === "string" ? cache : null };
}

function isSpeechEntry(value: unknown): value is SpeechEntry {
  return isJsonObject(value) && speechKinds.some((kind) => kind === value["kind"]) && typeof value["name"] === "string";
}

function toJson(value: object): Json {
  return value as unknown as Json;
}

function readEntries(value: unknown): readonly InventoryEntry[] | null {
  if (!isJsonObject(value) || !Array.isArray(value["models"])) return null;
  const models = value["models"] as readonly Json[];
  return models.every(isEntry) ? (models as unknown as readonly InventoryEntry[]) : null;
}

/** Removing deletes what an entry names, so a mangled one must not be believed. */
function isEntry(value: Json): boolean {
  if (!isJsonObject(value)) return false;
  const texts = ["id", "repo", "tag", "revision", "commit", "addedAt"].every((key) => typeof value[key] === "string");
  return (
    texts &&
    typeof value["keep"] === "boolean" &&
    (value["leftAt"] === undefined || typeof value["leftAt"] === "string") &&
    (value["source"] === undefined || isSource(value["source"])) &&
    hasFiles(value) &&
    (value["former"] === undefined || isFormer(value["former"]))
  );
}

function isSource(value: Json): boolean {
  return isJsonObject(value) && typeof value["path"] === "string" && typeof value["stamp"] === "string";
}

function isFormer(value: Json): boolean {
  return (
    Array.isArray(value) &&
    value.every((revision) => isJsonObject(revision) && typeof revision["commit"] === "string" && hasFiles(revision))
  );
}

function hasFiles(value: JsonObject): boolean {
  return Array.isArray(value["files"]) && value["files"].every(isFile);
}

function isFile(value: Json): boolean {
  return (
    isJsonObject(value) &&
    typeof value["path"] === "string" &&
    typeof value["blob"] === "string" &&
    typeof value["size"] === "number" &&
    (value["found"] === undefined || value["found"] === true)
  );
}
