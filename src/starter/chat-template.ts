// The chat template of a scripted model: which script answers a chat. Pure.

/**
 * When a script is spoken. `tool`: a tool of that name is offered. `word`: the last user message contains it. `gap`: a
 * text with a gap is to be filled in, which no chat asks for.
 */
export type Cue = "default" | "toolResult" | "gap" | { readonly tool: string } | { readonly word: string };

export interface Script {
  readonly when: Cue;
  readonly says: string;
  /** Starts over instead of stopping; ends only where the context does. */
  readonly endless?: boolean;
}

/** `full` knows tools and thinking, `plain` neither; `none` leaves the engine to its own. */
export type TemplateKind = "full" | "plain" | "none";

export function marker(index: number): string {
  return `<|script-${index}|>`;
}

/** Jinja: renders a chat, then the start marker of the script that fits it. Tags are those the engine knows by itself. */
export function chatTemplate(scripts: readonly Script[], kind: "full" | "plain"): string {
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
  return `${kind === "plain" ? plainHead : fullHead}{%- if add_generation_prompt %}<|assistant|>\n${choice}${closing}{%- endif %}`;
}

function plainWord(word: string): string {
  if (!/^[\w-]+$/.test(word)) throw new RangeError(`not a plain word: ${JSON.stringify(word)}`);
  return word;
}

const fullHead = `{%- set state = namespace(asked='', tools=[]) %}
{%- if tools %}<|tools|>
{%- for tool in tools %}{%- set state.tools = state.tools + [tool.function.name] %}
{{ tool | tojson }}{%- endfor %}
To call one, answer with <tool_call>{"name": NAME, "arguments": OBJECT}</tool_call>
{% endif %}
{%- for message in messages %}
{%- if message.role == 'user' and message.content is string %}{%- set state.asked = message.content | lower %}{%- endif %}
{{- '<|' + message.role + '|>\\n' }}
{%- if message.role == 'assistant' and message.reasoning_content %}{{- '<think>' + message.reasoning_content + '</think>' }}{%- endif %}
{%- if message.content is string %}{{- message.content }}{%- endif %}
{%- if message.tool_calls %}
{%- for call in message.tool_calls %}{{- '<tool_call>{"name": "' + call.function.name + '", "arguments": ' + (call.function.arguments | tojson) + '}</tool_call>' }}{%- endfor %}
{%- endif %}
{{- '</s>\\n' }}
{%- endfor %}
`;

const plainHead = `{%- set state = namespace(asked='') %}
{%- for message in messages %}
{%- if message.role == 'user' and message.content is string %}{%- set state.asked = message.content | lower %}{%- endif %}
{{- '<|' + message.role + '|>\\n' + message.content + '</s>\\n' }}
{%- endfor %}
`;
