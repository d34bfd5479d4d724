// What a model can do, in Ollama's words, read from its files: also of a model that is not loaded. Pure.
import { type GgufDetails, isForEmbeddings, poolings } from "../../core/gguf-facts.ts";

export type Capability = "completion" | "tools" | "insert" | "vision" | "embedding" | "thinking";

/**
 * Empty for a model that ranks, for which Ollama has no word: embeddings of such a one are what stood in memory.
 * @param hasProjector a vision projector lies beside the model, so that the engine loads it along.
 */
export function capabilitiesOf(details: GgufDetails, hasProjector: boolean): Capability[] {
  if (details.pooling === poolings.rank) return [];
  if (isForEmbeddings(details.architecture, details.pooling)) return ["embedding"];
  const templates = [details.template ?? "", ...details.templates.values()];
  const found: Capability[] = ["completion"];
  if (details.templates.has("tool_use") || templates.some(offersTools)) found.push("tools");
  if (details.hasFimTokens) found.push("insert");
  if (hasProjector) found.push("vision");
  if (templates.some(thinks)) found.push("thinking");
  return found;
}

/** The variable `tools` in a statement of the template, not the word in one of its texts. */
function offersTools(template: string): boolean {
  return statements(template).some((statement) => /(?<![\w.'"])tools(?![\w'"])/.test(statement));
}

/** Markers of the families that reason, and the variables by which reasoning is switched or handed back. */
const thinkingMarkers = [
  "<think>",
  "</think>",
  "[THINK]",
  "<|channel|>analysis",
  "<|channel>thought",
  "<seed:think>",
  "<|START_THINKING|>",
  "<reasoning>",
];

function thinks(template: string): boolean {
  if (thinkingMarkers.some((marker) => template.includes(marker))) return true;
  return statements(template).some((statement) =>
    /\b(?:enable_thinking|reasoning_content|reasoning_effort|thinking_budget)\b|\.thinking\b/.test(statement),
  );
}

/** The parts of a Jinja template that compute; the text between them, and comments, left out. */
function statements(template: string): string[] {
  return template.match(/\{[%{][\s\S]*?[%}]\}/g) ?? [];
}
