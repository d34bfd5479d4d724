// Calls that wait for a pull, and what they added to the document: removed with the last of them that failed or left.
import { equalJson, isJsonObject } from "../core/json.ts";
import type { Desired } from "../desired/document/document.ts";
import type { DesiredStore } from "../desired/store.ts";

export interface Claim {
  /** The id by which the document names the model. */
  readonly key: string;
  /** The document that names it. */
  readonly generation: number;
  /** The model is present, or stays in the document without waiting calls. */
  keep(): void;
  /** Removes the model again, if no other call waits for it and no other edit has named it. */
  giveUp(): Promise<void>;
}

export function createClaims(store: Pick<DesiredStore, "edit" | "inFile">) {
  const waiting = new Map<string, { count: number; added: boolean }>();

  async function withdraw(key: string, by: string): Promise<void> {
    await store.edit(({ tree: { models } }) => {
      const entry = isJsonObject(models) && Object.hasOwn(models, key) ? models[key] : undefined;
      // Edited since by another call: then it stays.
      const isOurs = entry !== undefined && equalJson(entry, {}) && store.inFile(key) === undefined;
      return isOurs ? { patch: { models: { [key]: null } } } : null;
    }, by);
  }

  return {
    /** `named`: the id by which the document names the model already, if it does. */
    claim: async (id: string, named: (document: Desired) => string | undefined, by: string): Promise<Claim> => {
      let key = id;
      let added = false;
      const { generation } = await store.edit(({ document }) => {
        const known = named(document);
        key = known ?? id;
        added = known === undefined;
        // A removed model that the file still names comes back as the file has it: with its source, its context size.
        return added ? { patch: { models: { [id]: store.inFile(id) ?? {} } } } : null;
      }, by);
      const entry = waiting.get(key) ?? { count: 0, added: false };
      entry.count++;
      entry.added ||= added;
      waiting.set(key, entry);
      let held = true;
      /** True for the last one. */
      const letGo = (): boolean => {
        if (!held) return false;
        held = false;
        if (--entry.count > 0) return false;
        waiting.delete(key);
        return true;
      };
      return {
        key,
        generation,
        keep: () => void letGo(),
        giveUp: async () => {
          if (letGo() && entry.added) await withdraw(key, by);
        },
      };
    },
  };
}
