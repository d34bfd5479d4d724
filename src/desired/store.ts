// The one desired document: who may change it, on what condition, and its two state files.
// Holds no opinion on what the document means; the loop reads it.
import { createHash } from "node:crypto";
import { join } from "node:path";
import { GatewayError } from "../core/errors.ts";
import { type Change, equalJson, isJsonObject, type JsonObject, listChanges } from "../core/merge-patch.ts";
import { parseJson, readIfPresent, readJsonState, writeState } from "./atomic-file.ts";
import {
  type Desired,
  type DesiredState,
  type DocumentTree,
  emptyTree,
  mergeFile,
  patchInput,
  toDesired,
  toInput,
} from "./document.ts";
import { formatPath } from "./parse.ts";
import { type Problem, validateDocument } from "./validate.ts";

/** Who wrote a field last, and when (ISO 8601). */
export interface FieldOwner {
  readonly by: string;
  readonly at: string;
}

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
  /** Validates without changing: the document that `put` or `patch` would make. */
  preview(change: DocumentChange): Desired;
  /** Errors: `invalid_document` with every problem, `precondition_failed` where `ifMatch` names another document. */
  change(change: DocumentChange, by: string, ifMatch?: string): Promise<DesiredState>;
  /** Merges in what differs between the file as last applied and the file now. */
  applyFile(tree: DocumentTree, by: string): Promise<DesiredState>;
  differencesFromFile(): FieldDifference[];
  /** Whether a file was ever applied: a file that is missing then has vanished, else it was never there. */
  hasAppliedFile(): boolean;
  onChange(listener: (state: DesiredState) => void): void;
}

export type DocumentChange =
  | { readonly kind: "put"; readonly input: unknown }
  | { readonly kind: "patch"; readonly patch: unknown };

interface Saved {
  readonly generation: number;
  readonly tree: DocumentTree;
  readonly owners: Readonly<Record<string, FieldOwner>>;
}

export async function openDesiredStore(options: {
  readonly stateDir: string;
  readonly now: () => number;
  readonly warn: (message: string, fields: object) => void;
}): Promise<DesiredStore> {
  const desiredPath = join(options.stateDir, "desired.json");
  const appliedPath = join(options.stateDir, "last-applied.json");
  const setAside = (path: string): void => options.warn("a state file was unreadable and was set aside", { path });

  let applied = await readJsonState(appliedPath, readTree, setAside);
  let saved = (await readJsonState(desiredPath, readSaved, setAside)) ?? startingFrom(applied);
  let state = describe(saved);
  const listeners: ((state: DesiredState) => void)[] = [];
  let queue: Promise<unknown> = Promise.resolve();

  /** One change at a time, each on the outcome of the one before; on disk before anyone sees it. */
  function serialized<T>(task: () => Promise<T>): Promise<T> {
    const result = queue.then(task);
    queue = result.catch(() => undefined);
    return result;
  }

  /** `file`: the file that is applied by it, on disk right after the document and seen together with it. */
  async function commit(tree: DocumentTree, by: string, file?: DocumentTree): Promise<DesiredState> {
    const changes = listChanges(saved.tree, tree);
    if (changes.length === 0) {
      await noteApplied(file);
      return state;
    }
    const owner: FieldOwner = { by, at: new Date(options.now()).toISOString() };
    const owners = new Map(Object.entries(saved.owners));
    for (const change of changes) owners.set(pathKey(change.path), owner);
    const next: Saved = { generation: saved.generation + 1, tree, owners: Object.fromEntries(owners) };
    await writeState(desiredPath, `${JSON.stringify(next, null, 2)}\n`);
    // After the document: a crash in between merges the same edit again, which changes nothing.
    await noteApplied(file);
    saved = next;
    state = describe(next);
    for (const listener of listeners) listener(state);
    return state;
  }

  async function noteApplied(file: DocumentTree | undefined): Promise<void> {
    if (!file || (applied && equalJson(applied, file))) return;
    await writeState(appliedPath, `${JSON.stringify(file, null, 2)}\n`);
    applied = file;
  }

  function resolve(change: DocumentChange): DocumentTree {
    const input = change.kind === "put" ? change.input : patchInput(saved.tree, requireObject(change.patch));
    const validation = validateDocument(input);
    if (!validation.ok) throw invalid(validation.problems);
    return validation.tree;
  }

  return {
    current: () => state,
    preview: (change) => toDesired(resolve(change)),
    change: (change, by, ifMatch) =>
      serialized(async () => {
        if (ifMatch !== undefined && !matches(ifMatch, state.etag)) {
          throw new GatewayError("precondition_failed", `the document is ${state.etag} now`);
        }
        return commit(resolve(change), by);
      }),
    applyFile: (tree, by) => serialized(() => commit(mergeFile(saved.tree, applied ?? emptyTree, tree), by, tree)),
    differencesFromFile: () =>
      listChanges(applied ?? emptyTree, saved.tree).map(({ path, before, after }) => {
        const owner = saved.owners[pathKey(path)];
        return {
          path: formatPath(path),
          file: before ?? null,
          desired: after ?? null,
          setBy: owner?.by ?? "unknown",
          at: owner?.at ?? null,
        };
      }),
    hasAppliedFile: () => applied !== null,
    onChange: (listener) => void listeners.push(listener),
  };
}

function pathKey(path: readonly string[]): string {
  return JSON.stringify(path);
}

function describe(saved: Saved): DesiredState {
  const hash = createHash("sha256").update(JSON.stringify(saved.tree)).digest("hex").slice(0, 12);
  return {
    generation: saved.generation,
    tree: saved.tree,
    document: toDesired(saved.tree),
    etag: `"g${saved.generation}-${hash}"`,
  };
}

/** The document and the file as last applied, as they lie on disk; for a look without a running gateway. */
export async function readSavedDocument(
  stateDir: string,
): Promise<{ readonly tree: DocumentTree; readonly applied: DocumentTree | null }> {
  const read = async (name: string): Promise<unknown> => parseJson((await readIfPresent(join(stateDir, name))) ?? "");
  const applied = readTree(await read("last-applied.json"));
  return { tree: (readSaved(await read("desired.json")) ?? startingFrom(applied)).tree, applied };
}

/**
 * Where there is no document of ours it starts from the file as last applied. From nothing, the file as it is now would
 * show no difference, and the document would want nothing.
 */
function startingFrom(applied: DocumentTree | null): Saved {
  return { generation: 0, tree: applied ?? emptyTree, owners: {} };
}

/** What the state file holds is checked like any input: a person may have edited it. */
function readSaved(value: unknown): Saved | null {
  if (!isJsonObject(value) || !Number.isSafeInteger(value["generation"])) return null;
  const tree = readTree(value["tree"]);
  const owners = isJsonObject(value["owners"]) ? (value["owners"] as unknown as Saved["owners"]) : {};
  return tree && { generation: value["generation"] as number, tree, owners };
}

function readTree(value: unknown): DocumentTree | null {
  if (!isJsonObject(value)) return null;
  const validation = validateDocument(toInput(value));
  return validation.ok ? validation.tree : null;
}

function requireObject(patch: unknown): JsonObject {
  if (!isJsonObject(patch)) throw new GatewayError("invalid_request", "a merge patch is a JSON object");
  return patch;
}

function invalid(problems: readonly Problem[]): GatewayError {
  const text = problems.map(({ path, message }) => (path.length > 0 ? `${formatPath(path)}: ${message}` : message));
  return new GatewayError("invalid_document", text.join("; "));
}

function matches(ifMatch: string, etag: string): boolean {
  return ifMatch.split(",").some((part) => part.trim() === "*" || part.trim() === etag);
}
