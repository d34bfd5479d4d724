// Removal by the name of a voice or a transcription model; every other name is a model's.
import { GatewayError } from "../core/errors.ts";
import type { DesiredStore } from "../desired/store.ts";
import type { SpeechStore } from "../execute/speech-files.ts";
import type { Edits } from "./edits.ts";

export function withSpeechRemoval(
  {
    store,
    speechFiles,
  }: { readonly store: Pick<DesiredStore, "current">; readonly speechFiles: Pick<SpeechStore, "has" | "remove"> },
  removeModel: Edits["remove"],
): Edits["remove"] {
  return async (name, call) => {
    if (!(await speechFiles.has(name))) return removeModel(name, call);
    if (call.dryRun) return { id: name, deletedFiles: 0, freedBytes: 0, removedPresetSection: false };
    if (store.current().document.suspend) throw new GatewayError("suspended", "not done: the document says suspend");
    const removed = await speechFiles.remove(name);
    if (!removed) return removeModel(name, call);
    const { name: id, deletedFiles, freedBytes } = removed;
    return { id, deletedFiles, freedBytes, removedPresetSection: false };
  };
}
