// Writes what calls have changed into gateway.yaml. Its author may save at any moment: their text is merged first, and never overwritten.
import { equalJson } from "../core/json.ts";
import { listChanges } from "../core/merge-patch.ts";
import type { PresetAllow } from "../core/preset-keys.ts";
import { readBytesIfPresent } from "../state/atomic-file.ts";
import { documentBounds } from "./document/bounds.ts";
import type { DocumentTree } from "./document/document.ts";
import { editApart, hashOfText } from "./parse-apart.ts";
import { replaceFile } from "./replace-file.ts";
import type { DesiredStore } from "./store.ts";

export type WriteBack = ReturnType<typeof createWriteBack>;

/** ms in which a save may come from a text before the last write: of an editor that had it open. Later ones warn of that themselves. */
const staleMs = 10_000;

export function createWriteBack(options: {
  readonly path: string;
  readonly store: Pick<DesiredStore, "current" | "noteWritten">;
  readonly presetAllow: PresetAllow;
  readonly now: () => number;
}) {
  const { path, store, presetAllow, now } = options;
  /** As it was applied or written last. */
  let file: { readonly hash: string; readonly tree: DocumentTree } | null = null;
  /** What was replaced a moment ago. */
  let replaced: readonly { readonly tree: DocumentTree; readonly until: number }[] = [];

  return {
    applied: (hash: string, tree: DocumentTree): void => {
      file = { hash, tree };
    },
    /** The text that the author of a save began with, if it is not the one in the file: the one that it differs from least. */
    baseOf: (tree: DocumentTree): DocumentTree | null => {
      replaced = replaced.filter(({ until }) => until > now());
      let least = file ? listChanges(file.tree, tree).length : 0;
      let base: DocumentTree | null = null;
      for (const earlier of replaced.toReversed()) {
        const count = listChanges(earlier.tree, tree).length;
        if (count >= least) continue;
        least = count;
        base = earlier.tree;
      }
      return base;
    },
    /** Null: the file has it all. `changed`: it is to be read first. Errors: of the file system, and where its text cannot be edited. */
    write: async (): Promise<{ readonly hash: string; readonly bytes: number } | "changed" | null> => {
      const { tree } = store.current();
      if (!file || equalJson(file.tree, tree)) return null;
      const bytes = await readBytesIfPresent(path);
      if (!bytes || hashOfText(bytes) !== file.hash) return "changed";
      const text = await editApart(bytes, tree, presetAllow);
      if (text === null || Buffer.byteLength(text) > documentBounds.bytes)
        throw new Error("its text cannot be edited, as none with aliases can: make the change by hand");
      if (!(await replaceFile(path, bytes, text))) return "changed";
      replaced = [...replaced, { tree: file.tree, until: now() + staleMs }];
      const hash = hashOfText(Buffer.from(text));
      await store.noteWritten(tree, hash);
      file = { hash, tree };
      return { hash, bytes: Buffer.byteLength(text) };
    },
  };
}
