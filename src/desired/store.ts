// The one desired document: its changes, their preconditions, and its two state files. The reconciler interprets it.
import { join } from "node:path";
import { GatewayError } from "../core/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../core/json.ts";
import { noneAllowed, type PresetAllow } from "../core/preset-keys.ts";
import { createSerial } from "../core/serial.ts";
import { plainStateFiles, readJsonState, type StateFiles } from "../state/state-folder.ts";
import { type Author, authorOf } from "./author.ts";
import { differencesBetween } from "./differences.ts";
import { boundProblem, clip } from "./document/bounds.ts";
import {
  type Desired,
  type DesiredState,
  type DocumentTree,
  emptyTree,
  mergeFile,
  patchInput,
  type Removal,
  toInput,
} from "./document/document.ts";
import { formatPath, requireFromFile, type Validation, validateDocument } from "./document/validate.ts";
import { readApplied, readSaved } from "./read-saved.ts";
import { resetTree } from "./reset.ts";
import {
  type Applied,
  afterEdit,
  type Beside,
  describe,
  type FileText,
  isSameText,
  type Saved,
  startingFrom,
} from "./saved.ts";

export type DesiredStore = Awaited<ReturnType<typeof openDesiredStore>>;

export type DocumentChange =
  | { readonly kind: "put"; readonly input: unknown }
  | { readonly kind: "patch"; readonly patch: unknown }
  /** A gateway.yaml that a call gives: it becomes the applied file, and merges as a save of the watched one does. */
  | { readonly kind: "apply"; readonly file: FileText }
  /** Fields as the applied file has them; null: all. By the paths of their differences, or parts of these. */
  | { readonly kind: "reset"; readonly fields: readonly string[] | null }
  /** A document that there was: its file-only fields were the file's, so they may come back. */
  | { readonly kind: "restore"; readonly tree: DocumentTree };

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
}

export async function openDesiredStore(options: StoreOptions) {
  const { stateDir, warn, files = plainStateFiles, presetAllow = noneAllowed } = options;
  let { saved, applied } = await readState(options);
  let state = describe(saved, applied);
  const listeners: ((state: DesiredState, news: EditNews) => void)[] = [];
  /** One change at a time, each on the outcome of the one before; on disk before it is visible. */
  const serialized = createSerial();

  /** `file`: the file that is applied by it, on disk right after the document and seen together with it. */
  async function commit(tree: DocumentTree, by: Author | string, beside: Beside = {}): Promise<DesiredState> {
    const author = authorOf(by);
    const owner = { by: author.by, at: timeNow() };
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
    const news = { before, author, at, isApplied: file !== undefined, removal: beside.removal?.id ?? null };
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

  function validated(input: unknown): DocumentTree {
    const validation = validateDocument(input, presetAllow);
    if (!validation.ok) throw invalid(validation);
    return validation.tree;
  }

  function inputOf(change: DocumentChange): unknown {
    if (change.kind === "put") return change.input;
    if (change.kind === "apply") return merged(change.file.tree);
    if (change.kind === "restore") return toInput(change.tree);
    if (change.kind === "reset") return toInput(resetTree(appliedTree(), saved.tree, change.fields));
    return patchInput(saved.tree, checkedPatch(change.patch));
  }

  function resolve(change: DocumentChange): DocumentTree {
    const tree = validated(inputOf(change));
    if (change.kind !== "restore") requireFromFile(tree, [saved.tree, appliedTree()]);
    return tree;
  }

  const appliedTree = (): DocumentTree => applied?.tree ?? emptyTree;
  const merged = (file: DocumentTree): unknown => toInput(mergeFile(saved.tree, appliedTree(), file));

  function besideOf(change: DocumentChange, by: Author | string): Beside {
    if (change.kind !== "apply") return {};
    const { tree, sha256, revision = null } = change.file;
    return { file: { tree, sha256, revision, by: authorOf(by).by, at: timeNow(), watched: applied?.watched ?? null } };
  }

  return {
    current: () => state,
    /** Validates without changing: the document that `change` would make. Errors: the same. */
    preview: (change: DocumentChange, ifMatch?: string): Desired => {
      requireMatch(state, ifMatch);
      const owner = { by: "", at: "" };
      const next = afterEdit({ saved, applied }, resolve(change), owner, besideOf(change, ""));
      return describe(next ?? saved, applied).document;
    },
    /** Errors: `invalid_document` with every problem, `file_only`, `precondition_failed` where `ifMatch` names another document. */
    change: (change: DocumentChange, by: Author | string, ifMatch?: string) =>
      serialized(async () => {
        requireMatch(state, ifMatch);
        return commit(resolve(change), by, besideOf(change, by));
      }),
    /** A patch made from the document as it is at its turn; null changes nothing. Errors: as `change`, and what `make` throws. */
    edit: (make: (state: DesiredState) => Edit | null, by: Author | string) =>
      serialized(async () => {
        const edit = make(state);
        return edit ? commit(resolve({ kind: "patch", patch: edit.patch }), by, edit) : state;
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
    applyFile: (tree: DocumentTree, by: string, sha256: string | null = null) =>
      serialized(async () => {
        if (sha256 !== null && applied?.watched === sha256) return state;
        const file = { tree, sha256, revision: null, by, at: timeNow(), watched: sha256 };
        return commit(validated(merged(tree)), by, { file });
      }),
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

/** Bounded before it is merged: that alone took 40 ms for 20,000 keys. */
function checkedPatch(patch: unknown): JsonObject {
  const bound = boundProblem(patch);
  if (bound) throw invalid({ ok: false, problems: [bound], more: 0, isTooLarge: true });
  if (!isJsonObject(patch)) throw new GatewayError("invalid_request", "a merge patch is a JSON object");
  return patch;
}

function invalid({ problems, more, isTooLarge }: Validation & { ok: false }): GatewayError {
  const text = problems.map(({ path, message }) => clip(path.length > 0 ? `${formatPath(path)}: ${message}` : message));
  if (more > 0) text.push(`and ${more} more`);
  return new GatewayError(isTooLarge ? "body_too_large" : "invalid_document", text.join("; "));
}

/** What a response shows beside the document has a part of its own in the ETag (`"g5-….…"`), and is no condition of a change. */
function requireMatch({ etag }: DesiredState, ifMatch: string | undefined): void {
  const parts = ifMatch?.split(",").map((part) => part.trim().replace(/\.\w+"$/, '"'));
  const isMatch = parts?.some((part) => part === "*" || part === etag) ?? true;
  if (!isMatch) throw new GatewayError("precondition_failed", `the document is ${etag} now`);
}
