// The changes that a call can make, and the document that each of them makes. Writes nothing.
import { GatewayError } from "../core/errors.ts";
import { isJsonObject, type JsonObject } from "../core/json.ts";
import type { PresetAllow } from "../core/preset-keys.ts";
import { boundProblem, clip } from "./document/bounds.ts";
import { type DocumentTree, emptyTree, mergeFile, patchInput, toInput } from "./document/document.ts";
import { formatPath } from "./document/problem.ts";
import { requireFromFile, type Validation, validateDocument } from "./document/validate.ts";
import { resetTree } from "./reset.ts";
import type { Applied, Beside, FieldOwner, FileText, Saved } from "./saved.ts";

export type DocumentChange =
  | { readonly kind: "put"; readonly input: unknown }
  | { readonly kind: "patch"; readonly patch: unknown }
  /** A gateway.yaml that a call gives: it becomes the applied file, and merges as a save of the watched one does. */
  | { readonly kind: "apply"; readonly file: FileText }
  /** Fields as the applied file has them; null: all. By the paths of their differences, or parts of these. */
  | { readonly kind: "reset"; readonly fields: readonly string[] | null }
  /** A document that there was: its file-only fields were the file's, so they may come back. */
  | { readonly kind: "restore"; readonly tree: DocumentTree };

interface State {
  readonly saved: Saved;
  readonly applied: Applied | null;
}

/** Errors: `invalid_document` with every problem, `file_only`, `invalid_request`. */
export function documentOf(change: DocumentChange, { saved, applied }: State, presetAllow: PresetAllow): DocumentTree {
  if (change.kind === "reset" && !applied)
    throw new GatewayError("invalid_request", "no file was applied yet, so there is nothing to reset to");
  const file = applied?.tree ?? emptyTree;
  const tree = validated(inputOf(change, saved.tree, file), presetAllow);
  if (change.kind !== "restore") requireFromFile(tree, [saved.tree, file]);
  return tree;
}

function inputOf(change: DocumentChange, tree: DocumentTree, file: DocumentTree): unknown {
  if (change.kind === "put") return change.input;
  if (change.kind === "apply") return toInput(mergeFile(tree, file, change.file.tree));
  if (change.kind === "restore") return toInput(change.tree);
  if (change.kind === "reset") return toInput(resetTree(file, tree, change.fields));
  return patchInput(tree, checkedPatch(change.patch));
}

export function validated(input: unknown, presetAllow: PresetAllow): DocumentTree {
  const validation = validateDocument(input, presetAllow);
  if (!validation.ok) throw invalid(validation);
  return validation.tree;
}

/** What the change changes together with the document. */
export function besideOf(change: DocumentChange, applied: Applied | null, { by, at }: FieldOwner): Beside {
  if (change.kind !== "apply") return {};
  const { tree, sha256, revision = null } = change.file;
  return { file: { tree, sha256, revision, by, at, watched: applied?.watched ?? null } };
}

/** The applied file once the watched one has the document written into it. */
export function asWritten(tree: DocumentTree, sha256: string, applied: Applied | null, at: string): Applied {
  // A text that a call has applied is still the one that was applied last.
  if (applied && applied.sha256 !== applied.watched) return { ...applied, tree, watched: sha256 };
  return { tree, sha256, revision: null, by: fileAuthor(sha256), at, watched: sha256 };
}

export function fileAuthor(sha256: string): string {
  return `file:${sha256.slice(0, 12)}`;
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
