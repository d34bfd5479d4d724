// Calls that wait for a pull, and what they added to the document: removed with the last of them that failed or left.
import { equalJson, isJsonObject } from "../core/json.ts";
import type { Author } from "../desired/author.ts";
import type { Desired } from "../desired/document/document.ts";
import type { DesiredStore } from "../desired/store.ts";

export type Claim = Awaited<ReturnType<ReturnType<typeof createClaims>["claim"]>>;

export function createClaims(store: Pick<DesiredStore, "edit" | "inFile">) {
  const waiting = new Map<string, { count: number; isAdded: boolean }>();

  async function withdraw(key: string, by: Author | string): Promise<void> {
    await store.edit(({ tree: { models } }) => {
      const entry = isJsonObject(models) && Object.hasOwn(models, key) ? models[key] : undefined;
      // Edited since by another call: then it stays.
      const isOurs = entry !== undefined && equalJson(entry, {}) && store.inFile(key) === undefined;
      return isOurs ? { patch: { models: { [key]: null } } } : null;
    }, by);
  }

  return {
    /** `named`: the id by which the document names the model already, if it does. */
    claim: async (id: string, named: (document: Desired) => string | undefined, by: Author | string) => {
      let key = id;
      let isAdded = false;
      const { generation } = await store.edit(({ document }) => {
        const known = named(document);
        key = known ?? id;
        isAdded = known === undefined;
        // A removed model that the file still names comes back as the file has it: with its source, its context size.
        return isAdded ? { patch: { models: { [id]: store.inFile(id) ?? {} } } } : null;
      }, by);
      const entry = waiting.get(key) ?? { count: 0, isAdded: false };
      entry.count++;
      entry.isAdded ||= isAdded;
      waiting.set(key, entry);
      /** True for the last one. */
      const end = (): boolean => {
        if (--entry.count > 0) return false;
        return waiting.delete(key);
      };
      return {
        /** The id by which the document names the model. */
        key,
        /** The document that names it. */
        generation,
        /** The model is present, or stays in the document without waiting calls. */
        keep: (): void => void end(),
        /** Removes the model again, if no other call waits for it and no other edit has named it. */
        giveUp: async (): Promise<void> => {
          if (end() && entry.isAdded) await withdraw(key, by);
        },
      };
    },
  };
}
