// Turns the engine's streams into the answers of Ollama's chat and generate, in pieces or whole.
import { performance } from "node:perf_hooks";
import { GatewayError } from "../../core/errors.ts";
import { eachEvent } from "../../core/event-stream.ts";
import { parseJson } from "../../core/json.ts";
import type { Translator } from "../proxy/generation.ts";
import { streamHeaders } from "../server/raw-reply.ts";
import { type ChatRecord, createChatRecords, merged } from "./wire/chat-records.ts";
import { type EventShape, type Frame, reframed, shapeOf } from "./wire/plain-text.ts";

/** Stands in a record for its text. */
const mark = "TEXT";

export interface AnswerShape {
  /** The name that the client used. */
  readonly model: string;
  readonly topLogprobs: number;
  /** A record a line, as they come; otherwise one record of all. */
  readonly stream: boolean;
  /** The engine's chunk as one of a chat completion. */
  readonly read: (chunk: unknown) => unknown;
  /** A record as the client gets it. */
  readonly write: (record: ChatRecord) => object;
}

export const recordHeaders = streamHeaders("application/x-ndjson");

export function answerTranslator({ model, topLogprobs, stream, read, write }: AnswerShape): Translator {
  /** Of the records of a block. */
  let time = "";
  const records = createChatRecords({ model, topLogprobs, createdAt: () => time, now: () => performance.now() });
  const made: ChatRecord[] = [];
  /** Of the last event that was parsed and had a text alone. */
  let shape: EventShape | null = null;
  let figures: Pick<ChatRecord, "prompt_eval_count" | "eval_count"> = {};

  /** The last chunk of these lines. */
  function parse(lines: Buffer): unknown {
    let chunk: unknown = null;
    eachEvent(lines, (data) => {
      chunk = data === "[DONE]" ? null : read(parseJson(data) ?? { error: "the engine sent what is no JSON" });
      if (chunk !== null) made.push(...records.push(chunk));
    });
    return chunk;
  }

  /** Events of the known shape take no parse. */
  function translate(block: Buffer): Buffer | null {
    const lines = block.toString("latin1");
    let text = "";
    let frame: Frame | null = null;
    for (let at = 0; ; ) {
      if (shape) {
        frame ??= frameOf(shape);
        const run = reframed(lines, at, shape, frame);
        text += run.made;
        at = run.end;
      }
      if (at === lines.length) return text === "" ? null : over(block, text);
      const end = lines.indexOf("\n", at) + 1;
      const chunk = parse(block.subarray(at, end));
      text += latin1Of(written());
      // Not a slice of the block's text, which would be kept with it.
      const next = shapeOf(block.toString("latin1", at, end + 1), chunk);
      if (next) [shape, frame] = [next, null];
      if (records.hasFailed()) shape = null;
      at = end;
    }
  }

  function frameOf({ kind }: EventShape): Frame {
    const message = kind === "content" ? { content: mark } : { thinking: mark };
    const line = latin1Of(lineOf(records.piece(message, [])));
    // The last one: the model's name stands before it.
    const at = line.lastIndexOf(mark);
    const between = (line + line).slice(at + mark.length, line.length + at);
    return { before: line.slice(0, at), after: line.slice(at + mark.length), between };
  }

  const lineOf = (record: ChatRecord): string => `${JSON.stringify(write(record))}\n`;
  const written = (): string => made.splice(0).map(lineOf).join("");
  return {
    family: "native",
    begin: () => (stream ? recordHeaders : null),
    // White space before a record is part of no record; an empty line would be one that cannot be read.
    ...(stream && { waiting: { headers: recordHeaders, tick: " " } }),
    lines: (block) => {
      time = new Date().toISOString();
      if (stream) return translate(block);
      parse(block);
      return null;
    },
    end: () => {
      time = new Date().toISOString();
      const last = records.end();
      // The exchange renders it, with the reason why the answer was cut.
      if (last instanceof GatewayError) return last;
      figures = last;
      if (!stream) return JSON.stringify(write(merged(made, last)));
      return lineOf(last);
    },
    count: (meter) => meter.addTokens(figures.prompt_eval_count ?? 0, figures.eval_count ?? 0),
  };
}

/** The text in the block, which is ours: a buffer of its own for each cost 3 % of a fast stream. */
function over(block: Buffer, text: string): Buffer {
  return text.length > block.length ? Buffer.from(text, "latin1") : block.subarray(0, block.write(text, "latin1"));
}

function latin1Of(text: string): string {
  return Buffer.from(text).toString("latin1");
}
