// history.json: the last generations of the document with their authors and outcomes, and what drifted. Written behind the
// changes, which do not wait for it; what a crash leaves out is one entry without an author at the next start.
import { join } from "node:path";
import { GatewayError } from "../../core/errors.ts";
import { equalJson } from "../../core/json.ts";
import { listChanges, setAt } from "../../core/merge-patch.ts";
import { redacted, redactText } from "../../core/redact.ts";
import { plainStateFiles, readJsonState, type StateFiles } from "../../state/state-folder.ts";
import { createWriteBehind } from "../../state/write-behind.ts";
import type { DocumentTree } from "../document/document.ts";
import { formatPath } from "../document/problem.ts";
import type { DesiredStore } from "../store.ts";
import {
  caughtUp,
  type DriftItem,
  fieldsOf,
  type History,
  type HistoryEntry,
  type Outcome,
  redactTree,
  treeOf,
  withDrift,
  withDriftMended,
  withEdit,
  withOutcome,
} from "./entries.ts";
import { readHistory } from "./read-history.ts";

export type HistoryBook = Awaited<ReturnType<typeof openHistory>>;

/** ms: a change and its outcome are one write, which does not hold up the preset's. */
const behindMs = 100;

/** Characters of a text that a client or a failure brings. */
const longestText = 500;

export async function openHistory({
  stateDir,
  now,
  warn,
  files = plainStateFiles,
}: {
  readonly stateDir: string;
  readonly now: () => number;
  readonly warn: (message: string, fields: object) => void;
  readonly files?: StateFiles;
}) {
  const path = join(stateDir, "history.json");
  const found = await readJsonState(path, readHistory, { files, warn });
  let history: History = found ?? { head: { generation: 0, tree: {} }, base: 0, entries: [], drifts: [] };
  const behind = createWriteBehind(behindMs, write);
  let trouble = "";

  function change(next: History): boolean {
    if (next === history) return false;
    history = next;
    behind.later();
    return true;
  }

  async function write(): Promise<void> {
    try {
      await files.write(path, `${JSON.stringify(history)}\n`);
      trouble = "";
    } catch (error) {
      // The next change writes all of it. Of the state folder's own trouble one line is enough.
      const { message } = error as Error;
      if (message !== trouble) warn("the history could not be written", { error: message });
      trouble = message;
    }
  }

  const timeNow = (): string => new Date(now()).toISOString();

  return {
    /** A document that is lost, put back from a backup or edited by hand has a new number: none comes again for another document. */
    generationOf: (document: { readonly generation: number; readonly tree: DocumentTree } | null): number => {
      const { generation, tree } = history.head;
      if (!found || (document && document.generation > generation)) return document?.generation ?? 0;
      return document && equalJson(redactTree(document.tree), tree) ? generation : generation + 1;
    },
    /** Records what the store changes from now on, and what it is by now. */
    follow: (store: Pick<DesiredStore, "current" | "onChange">): void => {
      const { generation, tree } = store.current();
      if (found) change(caughtUp(history, generation, tree, timeNow()));
      else history = { ...history, head: { generation, tree: redactTree(tree) }, base: generation };
      store.onChange(({ generation, tree }, { before, author, at, file, removal }) => {
        const edit = {
          generation,
          at,
          by: author.by,
          key: author.key ?? null,
          peer: author.peer ?? null,
          client: author.client ? shortText(author.client) : null,
          file: file && { sha256: file.sha256, revision: file.revision },
          removal,
        };
        change(withEdit(history, edit, tree, before));
      });
    },
    outcome: (generation: number, outcome: Outcome, problem: string | null): void => {
      change(withOutcome(history, generation, { outcome, problem: problem && shortText(problem) }, timeNow()));
    },
    drifted: (generation: number, what: readonly DriftItem[]): void => {
      const told = what.map((item) => ({ ...item, message: shortText(item.message) }));
      change(withDrift(history, generation, told, timeNow()));
    },
    /** Returns whether a drift was open. */
    mended: (): boolean => change(withDriftMended(history, timeNow())),
    current: (): History => history,
    /** Errors: `generation_not_found`. */
    entry: (generation: number): HistoryEntry => {
      const entry = history.entries.findLast((each) => each.generation === generation);
      // The oldest document is there to go back to; what changed it is not.
      if (!entry) throw notKept(generation, { ...history, base: history.base + 1 });
      return entry;
    },
    /** Secrets redacted. Errors: `generation_not_found`. */
    tree: (generation: number): DocumentTree => kept(history, generation),
    /** The document of a generation, to be put back. Errors: `generation_not_found`; `invalid_request` for a secret that is not kept. */
    restored: (generation: number, current: DocumentTree): DocumentTree => restored(history, generation, current),
    /** Resolves when all of it is on the disk, or was refused by it. */
    close: behind.close,
  };
}

function restored(history: History, generation: number, current: DocumentTree): DocumentTree {
  // What is the same in both stays as it is, secrets too.
  const changes = listChanges(redactTree(current), kept(history, generation));
  const lost = changes.flatMap(fieldsOf).find(({ after }) => JSON.stringify(after ?? null).includes(redacted));
  if (!lost) return changes.reduce((tree, { path, after }) => setAt(tree, path, after), current);
  throw new GatewayError(
    "invalid_request",
    `generation ${generation} had a secret in ${formatPath(lost.path)}, which the history does not keep: set that field first, or change the document by hand`,
  );
}

function kept(history: History, generation: number): DocumentTree {
  const tree = treeOf(history, generation);
  if (!tree) throw notKept(generation, history);
  return tree;
}

function notKept(generation: number, { base, head }: History): GatewayError {
  return new GatewayError(
    "generation_not_found",
    `generation ${generation} is not in the history, which reaches from ${base} to ${head.generation}`,
  );
}

function shortText(text: string): string {
  const plain = redactText(text);
  return plain.length > longestText ? `${plain.slice(0, longestText)}…` : plain;
}
