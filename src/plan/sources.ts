// Whether a model that the document imports from a local file is in sync with that file. Pure.
import type { DesiredModel } from "../desired/document/document.ts";
import type { Observed } from "./observed.ts";

export type SourceState = "current" | "changed" | "missing";

/** By path, size and time; the import compares the content, by its hash. */
export function sourceState({ id, source }: DesiredModel, { inventory, sources }: Observed): SourceState {
  const file = source === undefined ? undefined : sources.get(source);
  if (!file || inventory.state === "unknown") return "current";
  if (file.stamp === null) return "missing";
  const imported = inventory.value.find((entry) => entry.id.toLowerCase() === id.toLowerCase())?.source;
  return imported?.path === file.path && imported.stamp === file.stamp ? "current" : "changed";
}
