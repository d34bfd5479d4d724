// The chat template of a computed model: renders a chat, then the control token that the answer follows. Tags are those the
// engine knows by itself. Pure.
import { messageTemplate } from "../../../src/starter/starter-model.ts";

/** `choice`: Jinja that ends the prompt with a control token. */
export function chatTemplate(head: string, choice: string): string {
  return `${head}{%- if add_generation_prompt %}<|assistant|>\n${choice}{%- endif %}`;
}

/** Renders tools, tool calls and thinking: without it the engine would force an answer to a chat with tools into a grammar. */
export const toolsHead = `{%- set state = namespace(asked='', tools=[]) %}
{%- if tools %}<|tools|>
{%- for tool in tools %}{%- set state.tools = state.tools + [tool.function.name] %}
{{ tool | tojson }}{%- endfor %}
To call one, answer with <tool_call>{"name": NAME, "arguments": OBJECT}</tool_call>
{% endif %}
{%- for message in messages %}
{%- if message.role == 'user' and message.content is string %}{%- set state.asked = message.content | lower %}{%- endif %}
${messageTemplate}{%- endfor %}
`;
