// The starter model: what a first start without a network chats with. It says one sentence and says so. Pure.
import { scriptedModel } from "./scripted-model.ts";

export interface StarterModel {
  readonly fileName: string;
  /** The id under which the first gateway.yaml declares it. */
  readonly id: string;
  readonly bytes: Uint8Array;
}

export const starterId = "local/starter-GGUF:Q8_0";
export const starterFileName = "starter-Q8_0.gguf";
export const starterSentence =
  "I am the starter model of Model Gateway: computed, not trained, and this sentence is all I can say. " +
  "For a real model, add one under `models:` in gateway.yaml, for example ggml-org/gemma-3-270m-it-GGUF:Q8_0.";

/** Computed at each call (a few milliseconds), always the same bytes. */
export function starterModel(): StarterModel {
  const bytes = scriptedModel({
    name: "Model Gateway starter",
    contextLength: 2048,
    scripts: [{ when: "default", says: starterSentence }],
  });
  return { fileName: starterFileName, id: starterId, bytes };
}
