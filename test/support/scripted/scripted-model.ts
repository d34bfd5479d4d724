// Models that say what a test's scripts tell them, on the real engine.
import { chatTemplate, toolsHead } from "./chat-template.ts";
import { type ComputedModel, computedModel, computedShards } from "./computed-model.ts";
import { type GgufImage, wholeImage } from "./gguf-writer.ts";

/**
 * When a script is spoken. `tool`: a tool of that name is offered. `word`: the last user message contains it. `gap`: a
 * text with a gap is to be filled in, which no chat asks for.
 */
type Cue = "default" | "toolResult" | "gap" | { readonly tool: string } | { readonly word: string };

export interface Script {
  readonly when: Cue;
  readonly says: string;
  /** Starts over instead of stopping; ends only where the context does. */
  readonly endless?: boolean;
}

/** `full` knows tools and thinking, `plain` neither; `none` leaves the engine to its own. */
type TemplateKind = "full" | "plain" | "none";

function marker(index: number): string {
  return `<|script-${index}|>`;
}

export interface ScriptedModel extends Omit<ComputedModel, "chains" | "fallback" | "template" | "controlTokens"> {
  /**
   * A tool's result is answered first, then words in this order, then tools in this order, then the default. With a
   * script for a gap, the model knows the tokens that stand before and behind one.
   */
  readonly scripts: readonly Script[];
  /** Default `full`. */
  readonly template?: TemplateKind;
}

/** The model as a GGUF file. Throws a RangeError where its scripts cannot be spoken by one model. */
export function scriptedModel(model: ScriptedModel): Uint8Array {
  return wholeImage(scriptedModelImage(model));
}

/** As {@link scriptedModel}, but leaves out the zeros that a large one ends with. */
export function scriptedModelImage(model: ScriptedModel): GgufImage {
  return computedModel(computedOf(model));
}

/** As {@link scriptedModel}, in so many files. */
export function scriptedShards(model: ScriptedModel, count: number): Uint8Array[] {
  return computedShards(computedOf(model), count);
}

function computedOf({ scripts, template = "full", ...rest }: ScriptedModel): ComputedModel {
  const hasGap = scripts.some(({ when }) => when === "gap");
  return {
    ...rest,
    // The engine ends what stands around a gap with the token in its middle.
    chains: scripts.map(({ when, says, endless = false }, index) => ({
      start: when === "gap" ? gapToken("mid") : marker(index),
      says,
      endless,
    })),
    fallback: scripts.findLastIndex(({ when }) => when === "default"),
    template: template === "none" ? null : templateOf(scripts, template),
    controlTokens: hasGap
      ? ["pre", "suf", "mid"].map((part) => [`tokenizer.ggml.fim_${part}_token_id`, gapToken(part)] as const)
      : [],
  };
}

function gapToken(part: string): string {
  return `<|fim-${part}|>`;
}

/** Ends the prompt with the start marker of the script that fits the chat. */
function templateOf(scripts: readonly Script[], kind: "full" | "plain"): string {
  const branches: { readonly test: string; readonly rank: number; readonly index: number }[] = [];
  let fallback = 0;
  for (const [index, { when, says }] of scripts.entries()) {
    // A client that switches thinking off gets an answer without.
    const unless = says.startsWith("<think>") ? " and not (enable_thinking is defined and not enable_thinking)" : "";
    if (when === "default") fallback = index;
    else if (when === "gap") continue;
    else if (kind === "plain" && (unless !== "" || when === "toolResult" || "tool" in when))
      throw new RangeError(`script ${index} needs tools or thinking, which a plain template does not know`);
    else if (when === "toolResult") branches.push({ test: `messages[-1].role == 'tool'${unless}`, rank: 0, index });
    else if ("word" in when)
      branches.push({ test: `'${plainWord(when.word)}' in state.asked${unless}`, rank: 1, index });
    else branches.push({ test: `'${plainWord(when.tool)}' in state.tools${unless}`, rank: 2, index });
  }
  branches.sort((a, b) => a.rank - b.rank || a.index - b.index);
  const choice = branches
    .map(({ test, index }, at) => `{%- ${at === 0 ? "if" : "elif"} ${test} %}${marker(index)}`)
    .join("");
  const closing = branches.length > 0 ? `{%- else %}${marker(fallback)}{%- endif %}` : marker(fallback);
  return chatTemplate(kind === "plain" ? plainHead : toolsHead, `${choice}${closing}`);
}

function plainWord(word: string): string {
  if (!/^[\w-]+$/.test(word)) throw new RangeError(`not a plain word: ${JSON.stringify(word)}`);
  return word;
}

const plainHead = `{%- set state = namespace(asked='') %}
{%- for message in messages %}
{%- if message.role == 'user' and message.content is string %}{%- set state.asked = message.content | lower %}{%- endif %}
{{- '<|' + message.role + '|>\\n' + message.content + '</s>\\n' }}
{%- endfor %}
`;
