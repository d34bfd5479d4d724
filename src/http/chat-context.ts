// What becomes of a context size that a chat carries.
import type { CachedModel } from "../plan/observed.ts";
import type { Catalogue } from "./catalogue.ts";
import type { Edits } from "./edits/edits.ts";

/** `apply`: it is put in force; `grow`: only where it is larger; `ignore`: never. */
export type ChatContextMode = "apply" | "grow" | "ignore";

export interface ChatContext {
  /**
   * Puts the size in force where the mode says so, never above the trained context, and waits for it. Resolves with the
   * size that is in force; null where nobody knows.
   */
  apply(model: CachedModel, asked: number | undefined, signal: AbortSignal): Promise<number | null>;
}

export function createChatContext(options: {
  readonly mode: ChatContextMode;
  readonly catalogue: Catalogue;
  readonly edits: Pick<Edits, "setContextSize">;
}): ChatContext {
  const inForce = (id: string): number | null =>
    options.catalogue.list().find((view) => view.model.id === id)?.contextLength ?? null;
  return { apply: (model) => Promise.resolve(inForce(model.id)) };
}
