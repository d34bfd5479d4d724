// A shortcut for events that differ in their text alone, as those of a stream do for a second at a time: their texts are copied as
// they stand, without a parse, a rendering or a string per event. Pure.
import { type Frame, frameOf } from "../../../core/event-stream.ts";
import { isJsonObject } from "../../../core/json.ts";

/** Members of a delta: the answer, and what the model thinks. */
export type TextKind = "content" | "reasoning_content";

/** Of such events, each with the blank line at its end. */
export interface EventShape extends Frame {
  readonly kind: TextKind;
}

const lineFeed = 0x0a;
/** Characters: a text of millions is too much for the search below. */
const longest = 65_536;

/** The shape of the last event of a block of whole lines, whose data is the chunk; null if it has more than a text. */
export function lastShape(block: Buffer, chunk: unknown): EventShape | null {
  const kind = textOf(chunk)?.kind;
  if (kind === undefined) return null;
  // Not a slice of the block's text, which would be kept with it.
  const event = block.toString("latin1", block.lastIndexOf(lineFeed, -3) + 1);
  if (!event.startsWith("data: {") || !event.endsWith("\n\n") || event.length > longest) return null;
  const [start, text] = new RegExp(`^data:.*?"${kind}":"((?:[^"\\\\]|\\\\.)*)(?=")`).exec(event) ?? [];
  if (start === undefined || text === undefined) return null;
  const [before, after] = [start.slice(0, start.length - text.length), event.slice(start.length)];
  // What was found may be another member of that name: with another text the event must have that one.
  const other = textOf(JSON.parse(`${before}+${text}${after}`.slice("data:".length)));
  return other?.text === JSON.parse(`"+${text}"`) ? { kind, ...frameOf(before, after) } : null;
}

/** What a chunk has to say, if it is a text alone. */
function textOf(chunk: unknown): { readonly kind: TextKind; readonly text: string } | null {
  if (!isJsonObject(chunk)) return null;
  const { choices, error, usage, timings } = chunk;
  const choice: unknown = Array.isArray(choices) && choices.length === 1 ? choices[0] : null;
  if (!isJsonObject(choice) || [error, usage, timings].some((member) => member !== undefined)) return null;
  const { index, delta, finish_reason: reason, logprobs } = choice;
  const isMore = (index ?? 0) !== 0 || (reason ?? null) !== null || (logprobs ?? null) !== null;
  if (isMore || !isJsonObject(delta) || Object.keys(delta).length !== 1) return null;
  const { content, reasoning_content: thought } = delta;
  if (typeof content === "string") return { kind: "content", text: content };
  return typeof thought === "string" ? { kind: "reasoning_content", text: thought } : null;
}
