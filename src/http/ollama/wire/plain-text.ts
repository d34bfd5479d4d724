// A shortcut for events that differ in their text alone, as those of a stream do for a second at a time: the bytes of each text are copied
// as they are escaped, without a parse, a rendering or a string. Pure.
import { isJsonObject } from "../../../core/json.ts";

/** Members of a delta: the answer, and what the model thinks. */
export type TextKind = "content" | "reasoning_content";

/** What stands around a text. */
export interface Frame {
  readonly before: Buffer;
  readonly after: Buffer;
  /** The end of one event and the beginning of the next one: in two pieces, each event took a tenth longer. */
  readonly between: Buffer;
}

/** Of such events, each with the blank line at its end. */
export interface EventShape extends Frame {
  readonly kind: TextKind;
  /** `between`, eight bytes each; the last ones overlap with those before them. */
  readonly words: Float64Array;
}

/** Bytes of an event whose shape is looked for. */
const longest = 65_536;

const [space, quote, backslash] = [0x20, 0x22, 0x5c] as const;
const shortEscapes = new Set(Buffer.from('"\\/bfnrt'));

/** Bytes that the texts of a block take at most in this frame. */
export function mostOf(block: Buffer, { between }: EventShape, frame: Frame): number {
  return block.length + (2 + block.length / between.length) * frame.between.length;
}

/**
 * Puts the texts of the events of this shape from there on into `to`, from `length` on, in another frame. Returns where the last of the
 * events ends, and where the last of the bytes written.
 */
export function reframed(
  [block, from]: readonly [Buffer, number],
  { before, between, after, words }: EventShape,
  frame: Frame,
  [to, length]: readonly [Buffer, number],
): readonly [end: number, length: number] {
  const view = new DataView(block.buffer, block.byteOffset, block.length);
  let [end, made] = [from, length];
  let isEvent = isAt(block, from, before);
  for (let at = from + before.length; isEvent; at = end + before.length) {
    const textEnd = insideEnd(block, at);
    // An empty text makes no record.
    if (textEnd <= at) break;
    // One comparison for the end of this event and the beginning of the next one.
    isEvent = textEnd + between.length <= block.length && areAt(view, textEnd, between.length, words);
    if (!isEvent && !isAt(block, textEnd, after)) break;
    const edge = end === from ? frame.before : frame.between;
    to.set(edge, made);
    made += edge.length;
    for (let next = at; next < textEnd; next++) to[made++] = block[next] as number;
    end = textEnd + after.length;
  }
  if (end === from) return [from, length];
  to.set(frame.after, made);
  return [end, made + frame.after.length];
}

function isAt(block: Buffer, at: number, bytes: Buffer): boolean {
  return block.subarray(at, at + bytes.length).equals(bytes);
}

/** Eight bytes at a time, as numbers: none of a text is NaN, and none is zero. */
function areAt(view: DataView, at: number, length: number, words: Float64Array): boolean {
  const last = words.length - 1;
  for (let index = 0; index < last; index++) if (view.getFloat64(at + index * 8, true) !== words[index]) return false;
  return view.getFloat64(at + length - 8, true) === words[last];
}

function wordsOf(bytes: Buffer): Float64Array {
  const count = Math.ceil(bytes.length / 8);
  return Float64Array.from({ length: count }, (_, index) => bytes.readDoubleLE(Math.min(index * 8, bytes.length - 8)));
}

/** Where the inside of a JSON string ends that begins there; -1: nowhere, or it is none. */
function insideEnd(bytes: Buffer, at: number): number {
  for (let end = at; end < bytes.length; end++) {
    const byte = bytes[end] as number;
    if (byte === quote) return end;
    if (byte < space) return -1;
    if (byte !== backslash) continue;
    if (shortEscapes.has(bytes[end + 1] ?? 0)) end++;
    else if (/^u[\da-fA-F]{4}$/.test(bytes.toString("latin1", end + 1, end + 6))) end += 5;
    else return -1;
  }
  return -1;
}

/** The shape of an event in latin1 with its blank line, whose data is the chunk; null if it has more than a text. */
export function shapeOf(event: string, chunk: unknown): EventShape | null {
  const kind = textOf(chunk)?.kind;
  if (kind === undefined || event.length > longest) return null;
  if (!event.startsWith("data: {") || !event.endsWith("\n\n")) return null;
  const [start, text] = new RegExp(`^data:.*?"${kind}":"((?:[^"\\\\]|\\\\.)*)(?=")`).exec(event) ?? [];
  if (start === undefined || text === undefined) return null;
  const [before, after] = [start.slice(0, start.length - text.length), event.slice(start.length)];
  // What was found may be another member of that name: with another text the event must have that one.
  const other = textOf(JSON.parse(`${before}+${text}${after}`.slice("data:".length)));
  if (other?.text !== JSON.parse(`"+${text}"`)) return null;
  const frame = frameOf(before, after);
  return { kind, ...frame, words: wordsOf(frame.between) };
}

/** Of latin1. Its parts share their bytes. */
export function frameOf(first: string, last: string): Frame {
  const between = Buffer.from(last + first, "latin1");
  return { before: between.subarray(last.length), after: between.subarray(0, last.length), between };
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
