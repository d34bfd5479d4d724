// The models of the long runs: each says one known text that nobody else says, slowly enough to be hit in the middle.

import { modelBytes } from "../models.ts";
import type { ScriptedModel } from "../scripted/scripted-model.ts";

const words = 80;

/** Everything that a model of this name ever says. */
export function chaosAnswer(name: string): string {
  return `${Array.from({ length: words }, (_, index) => `${name}-${index + 1}`).join(" ")} and that is all.`;
}

/** 9 MB, nearly all of it zeros to multiply with: nearly a thousand words per second while nothing else runs. */
function chaosModel(name: string): ScriptedModel {
  return {
    name,
    contextLength: 8192,
    width: 512,
    feedForward: 24_576,
    scripts: [{ when: "default", says: chaosAnswer(name) }],
  };
}

export const chaosFile = "model-Q8_0.gguf";

export function chaosBytes(name: string): Uint8Array {
  return modelBytes(chaosModel(name));
}

/** Those that clients ask for all the time. */
export const residents = ["ada", "bob", "cyd", "dan"] as const;

/** Comes and goes. */
export const guest = "eve";

export function repoOf(name: string): string {
  return `chaos/${name}`;
}

export function idOf(name: string): string {
  return `${repoOf(name)}:Q8_0`;
}
