// The one desired document: its changes and their preconditions. The reconciler interprets it.
import { GatewayError } from "../core/errors.ts";
import { equalJson, isJsonObject, type Json, type JsonObject } from "../core/json.ts";
import { listChanges } from "../core/merge-patch.ts";
import { noneAllowed } from "../core/preset-keys.ts";
import { createSerial } from "../core/serial.ts";
import type { Author } from "./author.ts";
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
import { openRecord, type RecordOptions } from "./record.ts";
import { afterEdit, describe } from "./saved.ts";

export type { DocumentChange } from "./changes.ts";
export type DesiredStore = Awaited<ReturnType<typeof openDesiredStore>>;

/** The watched file, saved. */
export interface SavedText {
  readonly sha256?: string | null;
  /** What its author began with; by default the file as it was applied last. */
  readonly base?: DocumentTree | null;
}

export interface Edit {
  readonly patch: JsonObject;
  /** Set together with the patch. */
  readonly removal?: Removal;
}

interface StoreOptions extends RecordOptions {
  /** Only the file changes the document: makes the error of a call that would change a field. */
  readonly managed?: ((path: readonly string[]) => Promise<GatewayError>) | undefined;
}

export async function openDesiredStore(options: StoreOptions) {
  const { presetAllow = noneAllowed, managed } = options;
  const record = await openRecord(options);
  /** One change at a time, each on the outcome of the one before; on disk before it is visible. */
  const serialized = createSerial();
  const resolve = (change: DocumentChange): DocumentTree => documentOf(change, record.now(), presetAllow);
  const appliedTree = (): DocumentTree => record.now().applied?.tree ?? emptyTree;

  async function requireUnmanaged(tree: DocumentTree): Promise<void> {
    const [change] = managed ? listChanges(record.now().saved.tree, tree) : [];
    if (managed && change) throw await managed(change.path);
  }

  return {
    current: record.state,
    /** Validates without changing: the document that `change` would make. Errors: the same. */
    preview: (change: DocumentChange, ifMatch?: string): Desired => {
      requireMatch(record.state(), ifMatch);
      const { saved, applied } = record.now();
      const owner = { by: "", at: "" };
      const next = afterEdit({ saved, applied }, resolve(change), owner, besideOf(change, applied, owner));
      return describe(next ?? saved, applied).document;
    },
    /** Errors: `invalid_document` with every problem, `file_only`, `precondition_failed` where `ifMatch` names another document. */
    change: (change: DocumentChange, by: Author | string, ifMatch?: string) =>
      serialized(async () => {
        requireMatch(record.state(), ifMatch);
        const tree = resolve(change);
        if (change.kind !== "reset") await requireUnmanaged(tree);
        return record.commit(tree, by, besideOf(change, record.now().applied, record.ownerOf(by)));
      }),
    /** A patch made from the document as it is at its turn; null changes nothing. Errors: as `change`, and what `make` throws. */
    edit: (make: (state: DesiredState) => Edit | null, by: Author | string) =>
      serialized(async () => {
        const edit = make(record.state());
        if (!edit) return record.state();
        const tree = resolve({ kind: "patch", patch: edit.patch });
        await requireUnmanaged(tree);
        return record.commit(tree, by, edit);
      }),
    /** Notes which blobs a removal frees, and in which revisions. No effect if the removal is cancelled. */
    noteRemoval: (id: string, found: Required<Pick<Removal, "blobs" | "commits">>) =>
      serialized(async () => {
        const { removals } = record.now().saved;
        if (!removals.some((removal) => removal.id === id)) return;
        await record.saveRemovals(removals.map((removal) => (removal.id === id ? { ...removal, ...found } : removal)));
      }),
    /** The files of a removal are gone. */
    endRemoval: (id: string) =>
      serialized(async () => {
        const { removals } = record.now().saved;
        const left = removals.filter((removal) => removal.id !== id);
        if (left.length < removals.length) await record.saveRemovals(left);
      }),
    /** The entry of this model id in the file as last applied; undefined if there is none. */
    inFile: (id: string): Json | undefined => {
      const { models } = appliedTree();
      return isJsonObject(models) && Object.hasOwn(models, id) ? models[id] : undefined;
    },
    /**
     * Merges in what the watched file has changed since a file was applied. A text that was merged before is no save of it: since then a
     * call may have applied another, which the next start would undo. Errors: `invalid_document` beside changes of the API.
     */
    applyFile: (tree: DocumentTree, by: string, { sha256 = null, base }: SavedText = {}) =>
      serialized(async () => {
        const { saved, applied } = record.now();
        const isMerged = sha256 !== null && applied?.watched === sha256;
        if (isMerged && !(managed && !equalJson(saved.tree, tree))) return record.state();
        const file = { tree, sha256, revision: null, ...record.ownerOf(by), watched: sha256 };
        const input = managed ? toInput(tree) : toInput(mergeFile(saved.tree, base ?? appliedTree(), tree));
        return record.commit(validated(input, presetAllow), by, { file });
      }),
    /** The watched file has the document of `tree`, written into it. */
    noteWritten: (tree: DocumentTree, sha256: string) =>
      serialized(async () => {
        const { saved, applied } = record.now();
        const file = asWritten(tree, sha256, applied, record.ownerOf("").at);
        await record.commit(saved.tree, file.by, { file });
      }),
    /** Errors: `file_managed` where only the file may change that field. */
    requireWritable: async (path: readonly string[]): Promise<void> => {
      if (managed) throw await managed(path);
    },
    differencesFromFile: () => differencesBetween(appliedTree(), record.now().saved),
    /** Whether a file was ever applied: a missing file has vanished then, else it never existed. */
    hasAppliedFile: () => record.now().applied !== null,
    onChange: record.onChange,
  };
}

/** What a response shows beside the document has a part of its own in the ETag (`"g5-….…"`), and is no condition of a change. */
function requireMatch({ etag }: DesiredState, ifMatch: string | undefined): void {
  const parts = ifMatch?.split(",").map((part) => part.trim().replace(/\.\w+"$/, '"'));
  const isMatch = parts?.some((part) => part === "*" || part === etag) ?? true;
  if (!isMatch) throw new GatewayError("precondition_failed", `the document is ${etag} now`);
}
