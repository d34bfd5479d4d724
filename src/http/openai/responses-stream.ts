// Completes the engine's streams of OpenAI's responses. llama-server (build 11669) leaves out what OpenAI's clients refuse a stream
// for: `@ai-sdk/openai` called no tool, and `openai` threw at the first reasoning. What the engine sends itself stays. Pure.
import { parseJson } from "../../core/json.ts";
import type { Translator } from "../proxy/generation.ts";

interface ResponseEvent {
  readonly type: string;
  readonly response?: object;
  readonly item?: { readonly id?: unknown; readonly type?: unknown };
  readonly item_id?: unknown;
  readonly part?: object;
}

/** Events of one part of an item's content; the engine's items have one. */
const partEvent = /^response\.(?:content_part|output_text|reasoning_text)\./;

/** `createdAt`: seconds since the epoch. */
export function completeResponses(
  inner: Translator,
  model: string,
  createdAt = Math.floor(Date.now() / 1000),
): Translator {
  /** Ids of the items, in their order. */
  const items: unknown[] = [];
  let sequence = 0;

  function completed(event: ResponseEvent): object {
    const id = event.item_id ?? event.item?.id;
    if (id !== undefined && !items.includes(id)) items.push(id);
    return {
      sequence_number: sequence++,
      ...(id === undefined ? {} : { output_index: items.indexOf(id) }),
      ...(partEvent.test(event.type) ? { content_index: 0 } : {}),
      ...event,
      ...(event.response === undefined
        ? {}
        : { response: { created_at: createdAt, model, output: [], ...event.response } }),
    };
  }

  /** The engine announces the part of a message's text, and not that of a reasoning's. */
  function announced({ type, item }: ResponseEvent): string {
    if (type !== "response.output_item.added" || item?.type !== "reasoning") return "";
    const part = { type: "reasoning_text", text: "" };
    const event = completed({ type: "response.content_part.added", item_id: item.id, part });
    return `\n\nevent: response.content_part.added\ndata: ${JSON.stringify(event)}`;
  }

  function rewritten(line: string): string {
    if (!line.startsWith("data: {")) return line;
    const event = eventIn(line.slice("data: ".length));
    return event ? `data: ${JSON.stringify(completed(event))}${announced(event)}` : line;
  }

  return {
    family: inner.family,
    ...(inner.waiting && { waiting: inner.waiting }),
    begin: (contentType) => inner.begin(contentType),
    end: (rest) => inner.end(rest),
    count: (meter) => inner.count?.(meter),
    nextSequence: () => sequence,
    lines: (block) => {
      // Null: it is no stream, and kept to its end.
      const passed = inner.lines(block);
      return passed === null ? null : passed.toString().split("\n").map(rewritten).join("\n");
    },
  };
}

function eventIn(text: string): ResponseEvent | null {
  const event = parseJson(text) as Partial<ResponseEvent> | null;
  return typeof event?.type === "string" ? { ...event, type: event.type } : null;
}
