// The one desired document: its changes, their preconditions, and its two state files. The reconciler interprets it.
import { join } from "node:path";
import { GatewayError } from "../core/errors.ts";
import { equalJson, isJsonObject, type Json, type JsonObject } from "../core/json.ts";
import { listChanges } from "../core/merge-patch.ts";
import { noneAllowed, type PresetAllow } from "../core/preset-keys.ts";
import { createSerial } from "../core/serial.ts";
import { plainStateFiles, readJsonState, type StateFiles } from "../state/state-folder.ts";
import { type Author, authorOf } from "./author.ts";
import { asWritten, besideOf, type DocumentChange, documentOf, validated } from "./changes.ts";
import { differencesBetween } from "./differences.ts";
import {
  type Desired,
  type DesiredState,
  type DocumentTree,
  emptyTree,
  mergeFile,
  type Removal,
  toInput,
} from "./document/document.ts";
import { readApplied, readSaved } from "./read-saved.ts";
import {
  type Applied,
  afterEdit,
  type Beside,
  describe,
  type FieldOwner,
  isSameText,
  type Saved,
  startingFrom,
} from "./saved.ts";

export type { DocumentChange } from "./changes.ts";
export type DesiredStore = Awaited<ReturnType<typeof openDesiredStore>>;

/** The watched file, saved. */
export interface SavedText {
  readonly sha256?: string | null;
  /** What its author began with; by default the file as it was applied last. */
  readonly base?: DocumentTree | null;
}

/** What a listener hears of an edit beside the new document. */
export interface EditNews {
  readonly before: DocumentTree;
  readonly author: Author;
  /** ISO 8601. */
  readonly at: string;
  /** A file was applied by it. */
  readonly isApplied: boolean;
  /** The model whose files are to be deleted. */
  readonly removal: string | null;
}

export interface Edit {
  readonly patch: JsonObject;
  /** Set together with the patch. */
  readonly removal?: Removal;
}

interface StoreOptions {
  readonly stateDir: string;
  readonly now: () => number;
  readonly warn: (message: string, fields: object) => void;
  readonly presetAllow?: PresetAllow;
  readonly files?: StateFiles;
  /** Of a document that has no file; by default 0. */
  readonly firstGeneration?: number | null;
  /** Only the file changes the document: makes the error of a call that would change a field. */
  readonly managed?: ((path: readonly string[]) => Promise<GatewayError>) | undefined;
}

export async function openDesiredStore(options: StoreOptions) {
  const { stateDir, warn, files = plainStateFiles, presetAllow = noneAllowed, managed } = options;
  let { saved, applied } = await readState(options);
  let state = describe(saved, applied);
  const listeners: ((state: DesiredState, news: EditNews) => void)[] = [];
  /** One change at a time, each on the outcome of the one before; on disk before it is visible. */
  const serialized = createSerial();

  /** `file`: the file that is applied by it, on disk right after the document and seen together with it. */
  async function commit(tree: DocumentTree, by: Author | string, beside: Beside = {}): Promise<DesiredState> {
    const owner = ownerOf(by);
    const next = afterEdit({ saved, applied }, tree, owner, beside);
    if (next) {
      const models = next.spared.filter((id) => !saved.spared.includes(id));
      if (tree["prune"] === true && models.length > 0)
        warn("list of models emptied: prune keeps what it named", { models });
      await files.write(join(stateDir, desiredName), textOf(next));
    }
    // After the document: a crash in between merges the same edit again, which changes nothing.
    const { file } = beside;
    if (file && !(applied && isSameText(applied, file))) {
      await files.write(join(stateDir, appliedName), textOf(file));
      applied = file;
    }
    const before = saved.tree;
    show(next ?? saved);
    const { at } = owner;
    const news = {
      before,
      author: authorOf(by),
      at,
      isApplied: file !== undefined,
      removal: beside.removal?.id ?? null,
    };
    if (next) for (const listener of listeners) listener(state, news);
    return state;
  }

  const timeNow = (): string => new Date(options.now()).toISOString();

  function show(next: Saved): void {
    saved = next;
    state = describe(next, applied);
  }

  /** Removal marks do not make a new generation. */
  async function saveRemovals(removals: readonly Removal[]): Promise<void> {
    const next = { ...saved, removals };
    await files.write(join(stateDir, desiredName), textOf(next));
    show(next);
  }

  const resolve = (change: DocumentChange): DocumentTree => documentOf(change, { saved, applied }, presetAllow);

  async function requireUnmanaged(tree: DocumentTree): Promise<void> {
    const [change] = managed ? listChanges(saved.tree, tree) : [];
    if (managed && change) throw await managed(change.path);
  }

  const appliedTree = (): DocumentTree => applied?.tree ?? emptyTree;
  const ownerOf = (by: Author | string): FieldOwner => ({ by: authorOf(by).by, at: timeNow() });

  return {
    current: () => state,
    /** Validates without changing: the document that `change` would make. Errors: the same. */
    preview: (change: DocumentChange, ifMatch?: string): Desired => {
      requireMatch(state, ifMatch);
      const owner = { by: "", at: "" };
      const next = afterEdit({ saved, applied }, resolve(change), owner, besideOf(change, applied, owner));
      return describe(next ?? saved, applied).document;
    },
    /** Errors: `invalid_document` with every problem, `file_only`, `precondition_failed` where `ifMatch` names another document. */
    change: (change: DocumentChange, by: Author | string, ifMatch?: string) =>
      serialized(async () => {
        requireMatch(state, ifMatch);
        const tree = resolve(change);
        if (change.kind !== "reset") await requireUnmanaged(tree);
        return commit(tree, by, besideOf(change, applied, ownerOf(by)));
      }),
    /** A patch made from the document as it is at its turn; null changes nothing. Errors: as `change`, and what `make` throws. */
    edit: (make: (state: DesiredState) => Edit | null, by: Author | string) =>
      serialized(async () => {
        const edit = make(state);
        if (!edit) return state;
        const tree = resolve({ kind: "patch", patch: edit.patch });
        await requireUnmanaged(tree);
        return commit(tree, by, edit);
      }),
    /** Notes which blobs a removal frees, and in which revisions. No effect if the removal is cancelled. */
    noteRemoval: (id: string, found: Required<Pick<Removal, "blobs" | "commits">>) =>
      serialized(async () => {
        if (!saved.removals.some((removal) => removal.id === id)) return;
        await saveRemovals(saved.removals.map((removal) => (removal.id === id ? { ...removal, ...found } : removal)));
      }),
    /** The files of a removal are gone. */
    endRemoval: (id: string) =>
      serialized(async () => {
        const left = saved.removals.filter((removal) => removal.id !== id);
        if (left.length < saved.removals.length) await saveRemovals(left);
      }),
    /** The entry of this model id in the file as last applied; undefined if there is none. */
    inFile: (id: string): Json | undefined => {
      const models = applied?.tree["models"];
      return isJsonObject(models) && Object.hasOwn(models, id) ? models[id] : undefined;
    },
    /**
     * Merges in what the watched file has changed since a file was applied. A text that was merged before is no save of it: since then a
     * call may have applied another, which the next start would undo. Errors: `invalid_document` beside changes of the API.
     */
    applyFile: (tree: DocumentTree, by: string, { sha256 = null, base }: SavedText = {}) =>
      serialized(async () => {
        const isMerged = sha256 !== null && applied?.watched === sha256;
        if (isMerged && !(managed && !equalJson(saved.tree, tree))) return state;
        const file = { tree, sha256, revision: null, by, at: timeNow(), watched: sha256 };
        const input = managed ? toInput(tree) : toInput(mergeFile(saved.tree, base ?? appliedTree(), tree));
        return commit(validated(input, presetAllow), by, { file });
      }),
    /** The watched file has the document of `tree`, written into it. */
    noteWritten: (tree: DocumentTree, sha256: string) =>
      serialized(async () => {
        const file = asWritten(tree, sha256, applied, timeNow());
        await commit(saved.tree, file.by, { file });
      }),
    /** Errors: `file_managed` where only the file may change that field. */
    requireWritable: async (path: readonly string[]): Promise<void> => {
      if (managed) throw await managed(path);
    },
    differencesFromFile: () => differencesBetween(appliedTree(), saved),
    /** Whether a file was ever applied: a missing file has vanished then, else it never existed. */
    hasAppliedFile: () => applied !== null,
    onChange: (listener: (state: DesiredState, news: EditNews) => void) => void listeners.push(listener),
  };
}

const desiredName = "desired.json";
const appliedName = "last-applied.json";

async function readState(options: StoreOptions) {
  const { stateDir, warn, files = plainStateFiles, presetAllow = noneAllowed, firstGeneration } = options;
  const leftOut = (key: string): void => warn("preset key no longer allowed, left out", { key });
  const readFile = (value: unknown): Applied | null => readApplied(value, presetAllow);
  const applied = await readJsonState(join(stateDir, appliedName), readFile, { files, warn });
  const read = (value: unknown): Saved | null => readSaved(value, presetAllow, leftOut);
  const saved = await readJsonState(join(stateDir, desiredName), read, { files, warn });
  return { applied, saved: saved ?? startingFrom(applied, firstGeneration ?? 0) };
}

function textOf(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

/** What a response shows beside the document has a part of its own in the ETag (`"g5-….…"`), and is no condition of a change. */
function requireMatch({ etag }: DesiredState, ifMatch: string | undefined): void {
  const parts = ifMatch?.split(",").map((part) => part.trim().replace(/\.\w+"$/, '"'));
  const isMatch = parts?.some((part) => part === "*" || part === etag) ?? true;
  if (!isMatch) throw new GatewayError("precondition_failed", `the document is ${etag} now`);
}
