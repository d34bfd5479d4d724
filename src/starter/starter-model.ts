// The starter model: what a first start without a network chats with. It says one sentence and says so. Pure.
import { chatTemplate, toolsHead } from "./chat-template.ts";
import { computedModel } from "./computed-model.ts";
import { wholeImage } from "./gguf-writer.ts";

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

/** Takes a few milliseconds; always the same bytes. */
export function starterModel(): StarterModel {
  const start = "<|script-0|>";
  const image = computedModel({
    name: "Model Gateway starter",
    contextLength: 2048,
    chains: [{ start, says: starterSentence }],
    fallback: 0,
    template: chatTemplate(toolsHead, start),
  });
  const bytes = wholeImage(image);
  return { fileName: starterFileName, id: starterId, bytes };
}
