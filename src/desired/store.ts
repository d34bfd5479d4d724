// The one desired document: its changes, their preconditions, and its two state files. The reconciler interprets it.
import { join } from "node:path";
import { GatewayError } from "../core/errors.ts";
import { equalJson, isJsonObject, type Json, type JsonObject } from "../core/json.ts";
import { type Change, listChanges } from "../core/merge-patch.ts";
import { noneAllowed, type PresetAllow } from "../core/preset-keys.ts";
import { createSerial } from "../core/serial.ts";
import { plainStateFiles, readJsonState, type StateFiles } from "../state/state-folder.ts";
import { boundProblem, clip } from "./document/bounds.ts";
import {
  type Desired,
  type DesiredState,
  type DocumentTree,
  emptyTree,
  mergeFile,
  patchInput,
  type Removal,
  sparedAfter,
  standingRemovals,
  toDesired,
  toInput,
} from "./document/document.ts";
import { formatPath, requireFromFile, type Validation, validateDocument } from "./document/validate.ts";
import { describe, type FieldOwner, readSaved, readTree, type Saved, startingFrom } from "./saved.ts";

/** A field in which the document differs from the file as it was last applied. */
export interface FieldDifference {
  readonly path: string;
  readonly file: Change["before"] | null;
  readonly desired: Change["after"] | null;
  readonly setBy: string;
  readonly at: string | null;
}

export interface DesiredStore {
  current(): DesiredState;
  /** Validates without changing: the document that {@link DesiredStore.change} would make. Errors: the same. */
  preview(change: DocumentChange, ifMatch?: string): Desired;
  /** Errors: `invalid_document` with every problem, `file_only`, `precondition_failed` where `ifMatch` names another document. */
  change(change: DocumentChange, by: string, ifMatch?: string): Promise<DesiredState>;
  /**
   * A merge patch made from the document as it is when its turn comes: what is read for it cannot change in between. Null
   * changes nothing. Errors: as {@link DesiredStore.change}, and what `make` throws.
   */
  edit(make: (state: DesiredState) => Edit | null, by: string): Promise<DesiredState>;
  /** Notes which blobs a removal frees, and in which revisions. No effect if the removal is cancelled. */
  noteRemoval(id: string, found: Required<Pick<Removal, "blobs" | "commits">>): Promise<void>;
  /** The files of a removal are gone. */
  endRemoval(id: string): Promise<void>;
  /** The entry of this model id in the file as last applied; undefined if there is none. */
  inFile(id: string): Json | undefined;
  /**
   * Merges in what differs between the file as last applied and the file now. Errors: `invalid_document` if that
   * conflicts with changes of the API.
   */
  applyFile(tree: DocumentTree, by: string): Promise<DesiredState>;
  differencesFromFile(): FieldDifference[];
  /** Whether a file was ever applied: a missing file has vanished then, else it never existed. */
  hasAppliedFile(): boolean;
  onChange(listener: (state: DesiredState) => void): void;
}

export type DocumentChange =
  | { readonly kind: "put"; readonly input: unknown }
  | { readonly kind: "patch"; readonly patch: unknown };

export interface Edit {
  readonly patch: JsonObject;
  /** Set together with the patch. */
  readonly removal?: Removal;
}

export async function openDesiredStore(options: {
  readonly stateDir: string;
  readonly now: () => number;
  readonly warn: (message: string, fields: object) => void;
  readonly presetAllow?: PresetAllow;
  readonly files?: StateFiles;
}): Promise<DesiredStore> {
  const { warn, files = plainStateFiles, presetAllow = noneAllowed } = options;
  const desiredPath = join(options.stateDir, "desired.json");
  const appliedPath = join(options.stateDir, "last-applied.json");
  const leftOut = (key: string): void => warn("preset key no longer allowed, left out", { key });
  let applied = await readJsonState(appliedPath, (value) => readTree(value, presetAllow), { files, warn });
  let saved =
    (await readJsonState(desiredPath, (value) => readSaved(value, presetAllow, leftOut), { files, warn })) ??
    startingFrom(applied);
  let state = describe(saved);
  const listeners: ((state: DesiredState) => void)[] = [];
  /** One change at a time, each on the outcome of the one before; on disk before it is visible. */
  const serialized = createSerial();

  /** `file`: the file that is applied by it, on disk right after the document and seen together with it. */
  async function commit(
    tree: DocumentTree,
    by: string,
    { file, removal }: { readonly file?: DocumentTree; readonly removal?: Removal } = {},
  ): Promise<DesiredState> {
    const changes = listChanges(saved.tree, tree);
    if (changes.length === 0 && !removal) {
      await noteApplied(file);
      return state;
    }
    const owner: FieldOwner = { by, at: new Date(options.now()).toISOString() };
    const owners = new Map(Object.entries(saved.owners));
    for (const change of changes) owners.set(pathKey(change.path), owner);
    const removals = standingRemovals(removal ? [...saved.removals, removal] : saved.removals, tree);
    const next: Saved = {
      generation: saved.generation + 1,
      tree,
      owners: Object.fromEntries(owners),
      removals,
      spared: sparedBy(tree, file).filter((id) => !removals.some(({ names }) => names.includes(id))),
    };
    warnOfSpared(next);
    await files.write(desiredPath, textOf(next));
    // After the document: a crash in between merges the same edit again, which changes nothing.
    await noteApplied(file);
    saved = next;
    state = describe(next);
    for (const listener of listeners) listener(state);
    return state;
  }

  function sparedBy(after: DocumentTree, file?: DocumentTree): readonly string[] {
    return sparedAfter(saved.spared, {
      before: saved.tree,
      after,
      ...(file ? { file: { before: applied ?? emptyTree, after: file } } : {}),
    });
  }

  function warnOfSpared({ tree, spared }: Saved): void {
    const models = spared.filter((id) => !saved.spared.includes(id));
    if (tree["prune"] === true && models.length > 0)
      warn("list of models emptied: prune keeps what it named", { models });
  }

  // Removal marks do not make a new generation.
  async function saveRemovals(removals: readonly Removal[]): Promise<void> {
    const next = { ...saved, removals };
    await files.write(desiredPath, textOf(next));
    saved = next;
    state = describe(next);
  }

  async function noteApplied(file: DocumentTree | undefined): Promise<void> {
    if (!file || (applied && equalJson(applied, file))) return;
    await files.write(appliedPath, textOf(file));
    applied = file;
  }

  function resolve(change: DocumentChange): DocumentTree {
    // Before it is merged: that alone took 40 ms for 20,000 keys.
    const bound = boundProblem(change.kind === "put" ? change.input : change.patch);
    if (bound) throw invalid({ ok: false, problems: [bound], more: 0, isTooLarge: true });
    const input = change.kind === "put" ? change.input : patchInput(saved.tree, requireObject(change.patch));
    const validation = validateDocument(input, presetAllow);
    if (!validation.ok) throw invalid(validation);
    return validation.tree;
  }

  function requireMatch(ifMatch: string | undefined): void {
    if (ifMatch !== undefined && !matches(ifMatch, state.etag))
      throw new GatewayError("precondition_failed", `the document is ${state.etag} now`);
  }

  function resolveCall(change: DocumentChange): DocumentTree {
    const tree = resolve(change);
    requireFromFile(tree, [saved.tree, applied ?? emptyTree]);
    return tree;
  }

  return {
    current: () => state,
    preview: (change, ifMatch) => {
      requireMatch(ifMatch);
      const tree = resolveCall(change);
      return toDesired(tree, standingRemovals(saved.removals, tree), sparedBy(tree));
    },
    change: (change, by, ifMatch) =>
      serialized(async () => {
        requireMatch(ifMatch);
        return commit(resolveCall(change), by);
      }),
    edit: (make, by) =>
      serialized(async () => {
        const edit = make(state);
        if (edit === null) return state;
        const { patch, removal } = edit;
        return commit(resolveCall({ kind: "patch", patch }), by, removal ? { removal } : {});
      }),
    noteRemoval: (id, { blobs, commits }) =>
      serialized(async () => {
        if (!saved.removals.some((removal) => removal.id === id)) return;
        await saveRemovals(
          saved.removals.map((removal) => (removal.id === id ? { ...removal, blobs, commits } : removal)),
        );
      }),
    endRemoval: (id) =>
      serialized(async () => {
        const left = saved.removals.filter((removal) => removal.id !== id);
        if (left.length < saved.removals.length) await saveRemovals(left);
      }),
    inFile: (id) => {
      const models = applied?.["models"];
      return isJsonObject(models) && Object.hasOwn(models, id) ? models[id] : undefined;
    },
    applyFile: (tree, by) =>
      serialized(() => {
        const merged = toInput(mergeFile(saved.tree, applied ?? emptyTree, tree));
        return commit(resolve({ kind: "put", input: merged }), by, { file: tree });
      }),
    differencesFromFile: () => {
      const lastOwner = ownersByPath(saved.owners);
      return listChanges(applied ?? emptyTree, saved.tree).map(({ path, before, after }) => {
        const owner = lastOwner(path);
        return {
          path: formatPath(path),
          file: before ?? null,
          desired: after ?? null,
          setBy: owner?.by ?? "unknown",
          at: owner?.at ?? null,
        };
      });
    },
    hasAppliedFile: () => applied !== null,
    onChange: (listener) => void listeners.push(listener),
  };
}

function textOf(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

/** The last author in a field, around it or below it: several writes may have touched the difference. */
function ownersByPath(owners: Saved["owners"]): (path: readonly string[]) => FieldOwner | undefined {
  const later = (a: FieldOwner | undefined, b: FieldOwner | undefined): FieldOwner | undefined =>
    a && b ? (a.at < b.at ? b : a) : (a ?? b);
  const below = new Map<string, FieldOwner | undefined>();
  for (const [key, owner] of Object.entries(owners)) {
    const path = JSON.parse(key) as readonly string[];
    for (const prefix of prefixesOf(path)) below.set(prefix, later(below.get(prefix), owner));
  }
  return (path) =>
    prefixesOf(path.slice(0, -1))
      .map((around) => owners[around])
      .reduce(later, below.get(pathKey(path)));
}

/** The path itself too. */
function prefixesOf(path: readonly string[]): string[] {
  return [...path, ""].map((_, length) => pathKey(path.slice(0, length)));
}

function pathKey(path: readonly string[]): string {
  return JSON.stringify(path);
}

function requireObject(patch: unknown): JsonObject {
  if (!isJsonObject(patch)) throw new GatewayError("invalid_request", "a merge patch is a JSON object");
  return patch;
}

function invalid({ problems, more, isTooLarge }: Validation & { ok: false }): GatewayError {
  const text = problems.map(({ path, message }) => clip(path.length > 0 ? `${formatPath(path)}: ${message}` : message));
  if (more > 0) text.push(`and ${more} more`);
  return new GatewayError(isTooLarge ? "body_too_large" : "invalid_document", text.join("; "));
}

function matches(ifMatch: string, etag: string): boolean {
  return ifMatch.split(",").some((part) => part.trim() === "*" || part.trim() === etag);
}
