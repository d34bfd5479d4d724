// What becomes of a context size that a chat carries: one change of the document for all who ask for the same, and one at
// a time for each model. Changes nothing by itself; the edit does.
import { GatewayError } from "../core/errors.ts";
import type { CachedModel } from "../plan/observed.ts";
import type { Catalogue } from "./catalogue.ts";
import { settledOrLeft } from "./changes.ts";
import type { Edits } from "./edits/edits.ts";

/** `apply`: it is put in force; `grow`: only where it is larger; `ignore`: never. */
export type ChatContextMode = "apply" | "grow" | "ignore";

export interface ChatContext {
  /**
   * Puts the size in force where the mode says so, never above the trained context, and waits for it. Resolves with the
   * size that is in force; null where nobody knows. Errors: those of {@link Edits.setContextSize}, and `cancelled`.
   */
  apply(model: CachedModel, asked: number | undefined, signal: AbortSignal): Promise<number | null>;
  /** Tokens that the model has now; null where nobody knows. */
  inForce(model: CachedModel): number | null;
}

interface Change {
  readonly size: number;
  readonly work: Promise<unknown>;
}

export function createChatContext(options: {
  readonly mode: ChatContextMode;
  readonly catalogue: Pick<Catalogue, "view">;
  readonly edits: Pick<Edits, "setContextSize">;
}): ChatContext {
  const { mode, catalogue, edits } = options;
  const changes = new Map<string, Change>();

  function inForce({ id }: CachedModel): number | null {
    return catalogue.view(id)?.contextLength ?? null;
  }

  function isWanted({ id }: CachedModel, size: number): boolean {
    const view = catalogue.view(id);
    const set = view?.contextSet ?? null;
    const given = view?.contextLength ?? null;
    // Where the engine gives less than what is set (parallel slots share it), asking again would give no more.
    if (size === set || size === given) return false;
    return mode === "apply" || size > Math.max(set ?? 0, given ?? 0);
  }

  /** Goes on without whoever asked: others may have joined, and the document says so already. */
  function start({ id }: CachedModel, size: number): Change {
    const work = edits.setContextSize(id, size, { by: "http:chat", signal: new AbortController().signal });
    const change = { size, work };
    changes.set(id, change);
    const forget = (): void => {
      if (changes.get(id) === change) changes.delete(id);
    };
    work.then(forget, forget);
    return change;
  }

  async function put(model: CachedModel, size: number, signal: AbortSignal): Promise<void> {
    for (;;) {
      if (signal.aborted) throw new GatewayError("cancelled", "the client left");
      const under = changes.get(model.id);
      if (under && under.size !== size) {
        // Whether that one fails is the matter of those who asked for it.
        await settledOrLeft(
          under.work.then(
            () => undefined,
            () => undefined,
          ),
          signal,
        );
        continue;
      }
      if (!under && !isWanted(model, size)) return;
      const { work } = under ?? start(model, size);
      await settledOrLeft(
        work.then(() => undefined),
        signal,
      );
      if (!signal.aborted) return;
    }
  }

  return {
    inForce,
    apply: async (model, asked, signal) => {
      if (asked !== undefined && mode !== "ignore") await put(model, Math.min(asked, model.nCtxTrain ?? asked), signal);
      return inForce(model);
    },
  };
}
