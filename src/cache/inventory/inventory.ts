// inventory.json: what this gateway pulled or imported, models and files of speech, and so may delete.
import { join } from "node:path";
import { equalJson, isJsonObject, type Json, type JsonObject } from "../../core/json.ts";
import { createSerial } from "../../core/serial.ts";
import { type FormerRevision, type InventoryEntry, type SpeechKind, speechKinds } from "../../plan/observed.ts";
import { withLeft } from "../../plan/removals.ts";
import { storedFiles } from "../../plan/removed-files.ts";
import { plainStateFiles, readJsonState, type StateFiles } from "../../state/state-folder.ts";
import type { Origin } from "../download/fetch.ts";

/** A voice by its id, or a transcription model by its file's name. */
export interface SpeechEntry {
  readonly kind: SpeechKind;
  readonly name: string;
}

export type Inventory = Awaited<ReturnType<typeof openInventory>>;

export async function openInventory(
  stateDir: string,
  warn: (message: string, fields: object) => void,
  files: StateFiles = plainStateFiles,
) {
  const path = join(stateDir, "inventory.json");
  let content = (await readJsonState(path, readContent, { files, warn })) ?? { entries: [], speech: [], place: null };
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
    /** Where the model cache was when it had models; null: never noted. */
    place: (): string | null => content.place,
    notePlace: (place: string): Promise<void> => save((before) => ({ ...before, place })),
    hasSpeech: ({ kind, name }: SpeechEntry): boolean =>
      content.speech.some((other) => other.kind === kind && other.name === name),
    addSpeech: (entry: SpeechEntry): Promise<void> => saveSpeech(entry, [entry]),
    removeSpeech: (entry: SpeechEntry): Promise<void> => saveSpeech(entry, []),
    entries: (): readonly InventoryEntry[] => content.entries,
    get: (id: string): InventoryEntry | undefined => content.entries.find((entry) => entry.id === id),
    /** Which program stored a blob of that repository, by its name, as far as an entry or what it was before has it. */
    originIn: (repo: string): ((blob: string) => Origin | undefined) => {
      const files = content.entries.filter((entry) => entry.repo === repo).flatMap(storedFiles);
      const all = new Set(files.map(({ blob }) => blob));
      const stored = new Set(files.flatMap(({ blob, found }) => (found ? [] : [blob])));
      return (blob) => (stored.has(blob) ? "stored" : all.has(blob) ? "found" : undefined);
    },
    /** What the entry was before is remembered with it: those files are ours too. */
    put: (entry: InventoryEntry): Promise<void> =>
      saveEntries((all) => {
        const before = all.find((other) => other.id === entry.id);
        return [...all.filter((other) => other !== before), before ? withFormer(entry, before) : entry];
      }),
    remove: (id: string): Promise<void> => saveEntries((all) => all.filter((entry) => entry.id !== id)),
    /** Keeps of the entries of a repository what `remember` answers; null: nothing. */
    review: (repo: string, remember: (entry: InventoryEntry) => InventoryEntry | null): Promise<void> =>
      saveEntries((all) => all.flatMap((entry) => (entry.repo === repo ? (remember(entry) ?? []) : entry))),
    /** Remembers which entries the document marks `keep`, so that they stay when they leave it. */
    noteKept: (ids: ReadonlySet<string>, unkept: ReadonlySet<string>): Promise<void> =>
      saveEntries((all) =>
        all.map((entry) => ({ ...entry, keep: ids.has(entry.id) || (entry.keep && !unkept.has(entry.id)) })),
      ),
    /** Remembers since when (ms) the document has not named entries: all but these. */
    noteLeft: (named: ReadonlySet<string>, at: number): Promise<void> =>
      saveEntries((all) => all.map((entry) => withLeft(entry, !named.has(entry.id), at))),
  };
}

/** No disk holds more revisions of a model. */
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
  if (!isJsonObject(value)) return null;
  const { models, speech = [], cache } = value;
  if (!Array.isArray(models) || !models.every(isEntry) || !Array.isArray(speech) || !speech.every(isSpeechEntry))
    return null;
  const entries = models as unknown as readonly InventoryEntry[];
  return { entries, speech, place: typeof cache === "string" ? cache : null };
}

function isSpeechEntry(value: Json): value is Json & SpeechEntry {
  return has(value, { kind: "string", name: "string" }) && speechKinds.some((kind) => kind === value["kind"]);
}

/** A removal deletes what an entry names, so a mangled one must not be believed. */
function isEntry(value: Json): boolean {
  const texts = { id: "string", repo: "string", tag: "string", revision: "string", addedAt: "string" };
  if (!isRevision(value) || !has(value, { ...texts, keep: "boolean" })) return false;
  const { leftAt, source, former } = value;
  return (
    (leftAt === undefined || typeof leftAt === "string") &&
    (source === undefined || has(source, { path: "string", stamp: "string" })) &&
    (former === undefined || (Array.isArray(former) && former.every(isRevision)))
  );
}

function isRevision(value: Json): boolean {
  if (!has(value, { commit: "string" }) || !Array.isArray(value["files"])) return false;
  return value["files"].every(
    (file: Json) =>
      has(file, { path: "string", blob: "string", size: "number" }) &&
      (file["found"] === undefined || file["found"] === true),
  );
}

function has(value: Json, fields: Readonly<Record<string, string>>): value is JsonObject {
  return isJsonObject(value) && Object.entries(fields).every(([name, type]) => typeof value[name] === type);
}

function toJson(value: object): Json {
  return value as unknown as Json;
}
