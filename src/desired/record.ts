// The document as it was saved last, with the file that was applied to it: desired.json and last-applied.json.
import { join } from "node:path";
import { noneAllowed, type PresetAllow } from "../core/preset-keys.ts";
import { plainStateFiles, readJsonState, type StateFiles } from "../state/state-folder.ts";
import { type Author, authorOf } from "./author.ts";
import type { DesiredState, DocumentTree, Removal } from "./document/document.ts";
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

/** What a listener hears of an edit beside the new document. */
export interface EditNews {
  readonly before: DocumentTree;
  readonly author: Author;
  /** ISO 8601. */
  readonly at: string;
  /** The file that was applied by it. */
  readonly file: Applied | null;
  /** The model whose files are to be deleted. */
  readonly removal: string | null;
}

export interface RecordOptions {
  readonly stateDir: string;
  readonly now: () => number;
  readonly warn: (message: string, fields: object) => void;
  readonly presetAllow?: PresetAllow;
  readonly files?: StateFiles;
  /** The number of the document as it was found, null where it has no file; by default the one it was saved with, or 0. */
  readonly generationOf?: (found: Pick<Saved, "generation" | "tree"> | null) => number;
}

export async function openRecord(options: RecordOptions) {
  const { stateDir, warn, files = plainStateFiles, now } = options;
  let { saved, applied } = await readState(options);
  let state = describe(saved, applied);
  const listeners: ((state: DesiredState, news: EditNews) => void)[] = [];
  const ownerOf = (by: Author | string): FieldOwner => ({ by: authorOf(by).by, at: new Date(now()).toISOString() });

  function show(next: Saved): void {
    saved = next;
    state = describe(next, applied);
  }

  return {
    state: () => state,
    now: () => ({ saved, applied }),
    /** Of what is set now. */
    ownerOf,
    /** `file`: the file that is applied by it, on disk right after the document. */
    commit: async (tree: DocumentTree, by: Author | string, beside: Beside = {}): Promise<DesiredState> => {
      const owner = ownerOf(by);
      const { file = null, removal = null } = beside;
      const before = saved.tree;
      const appliedBefore = applied;
      const next = afterEdit({ saved, applied }, tree, owner, beside);
      const unsaved = file && !(applied && isSameText(applied, file)) ? file : null;
      if (next) {
        const models = next.spared.filter((id) => !saved.spared.includes(id));
        if (tree["prune"] === true && models.length > 0)
          warn("list of models emptied: prune keeps what it named", { models });
        await files.write(join(stateDir, desiredName), textOf(next));
        // Seen together: for a moment the document would differ from its own file.
        applied = unsaved ?? applied;
        show(next);
        const news = { before, author: authorOf(by), at: owner.at, file, removal: removal?.id ?? null };
        for (const listener of listeners) listener(state, news);
      }
      // After the document, which does not wait for it: a crash in between merges the same edit again, which changes nothing.
      if (unsaved) {
        try {
          await files.write(join(stateDir, appliedName), textOf(unsaved), false);
          applied = unsaved;
        } catch (error) {
          applied = appliedBefore;
          throw error;
        } finally {
          show(saved);
        }
      }
      return state;
    },
    /** Removal marks do not make a new generation. */
    saveRemovals: async (removals: readonly Removal[]): Promise<void> => {
      const next = { ...saved, removals };
      await files.write(join(stateDir, desiredName), textOf(next));
      show(next);
    },
    onChange: (listener: (state: DesiredState, news: EditNews) => void) => void listeners.push(listener),
  };
}

const desiredName = "desired.json";
const appliedName = "last-applied.json";

async function readState(options: RecordOptions) {
  const {
    stateDir,
    warn,
    files = plainStateFiles,
    presetAllow = noneAllowed,
    generationOf = savedGeneration,
  } = options;
  const leftOut = (key: string): void => warn("preset key no longer allowed, left out", { key });
  const readFile = (value: unknown): Applied | null => readApplied(value, presetAllow);
  const applied = await readJsonState(join(stateDir, appliedName), readFile, { files, warn });
  const read = (value: unknown): Saved | null => readSaved(value, presetAllow, leftOut);
  const saved = await readJsonState(join(stateDir, desiredName), read, { files, warn });
  const generation = generationOf(saved);
  return { applied, saved: saved ? { ...saved, generation } : startingFrom(applied, generation) };
}

function savedGeneration(found: Pick<Saved, "generation"> | null): number {
  return found?.generation ?? 0;
}

function textOf(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
