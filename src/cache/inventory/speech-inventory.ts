// speech-inventory.json: the voices and transcription models that this gateway fetched, and so may delete unasked.
import { join } from "node:path";
import { isJsonObject } from "../../core/merge-patch.ts";
import { type SpeechKind, speechKinds } from "../../plan/observed.ts";
import { readJsonState } from "../../state/atomic-file.ts";
import { plainStateFiles, type StateFiles } from "../../state/state-folder.ts";

export interface SpeechInventory {
  names(): Readonly<Record<SpeechKind, ReadonlySet<string>>>;
  add(kind: SpeechKind, name: string): Promise<void>;
  remove(kind: SpeechKind, names: readonly string[]): Promise<void>;
}

type Names = Readonly<Record<SpeechKind, ReadonlySet<string>>>;

export async function openSpeechInventory(
  stateDir: string,
  warn: (message: string, fields: object) => void,
  files: StateFiles = plainStateFiles,
): Promise<SpeechInventory> {
  const path = join(stateDir, "speech-inventory.json");
  let names: Names = (await readJsonState(path, readNames, (aside) => {
    warn("the inventory of speech was unreadable and was set aside", { path: aside });
    files.noteAside(aside);
  })) ?? { transcription: new Set(), synthesis: new Set() };
  let queue: Promise<unknown> = Promise.resolve();

  function save(kind: SpeechKind, change: (own: ReadonlySet<string>) => ReadonlySet<string>): Promise<void> {
    const result = queue.then(async () => {
      const next: Names = { ...names, [kind]: change(names[kind]) };
      if (next[kind].size === names[kind].size) return;
      const lists = Object.fromEntries(speechKinds.map((each) => [each, [...next[each]].toSorted()]));
      await files.write(path, `${JSON.stringify(lists, null, 2)}\n`);
      names = next;
    });
    queue = result.catch(() => undefined);
    return result;
  }

  return {
    names: () => names,
    add: (kind, name) => save(kind, (own) => new Set([...own, name])),
    remove: (kind, gone) => save(kind, (own) => new Set([...own].filter((name) => !gone.includes(name)))),
  };
}

function readNames(value: unknown): Names | null {
  if (!isJsonObject(value)) return null;
  const [transcription, synthesis] = speechKinds.map((kind) => value[kind]);
  if (!Array.isArray(transcription) || !Array.isArray(synthesis)) return null;
  const all = [...transcription, ...synthesis];
  if (!all.every((name) => typeof name === "string")) return null;
  return { transcription: new Set(transcription as string[]), synthesis: new Set(synthesis as string[]) };
}
