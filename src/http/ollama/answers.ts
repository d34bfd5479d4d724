// Turns the engine's streams into the answers of Ollama's chat and generate, in pieces or whole.
import { performance } from "node:perf_hooks";
import { GatewayError } from "../../core/errors.ts";
import { eachEvent } from "../../core/event-stream.ts";
import { parseJson } from "../../core/json.ts";
import type { Translator } from "../proxy/generation.ts";
import { streamHeaders } from "../server/raw-reply.ts";
import { type ChatRecord, createChatRecords, merged } from "./wire/chat-records.ts";
import { type EventShape, type Frame, frameOf, mostOf, reframed, shapeOf, type TextKind } from "./wire/plain-text.ts";

/** Stands in a record for its text. */
const mark = "TEXT";

/** For what the texts of a block become. Of all streams: a block is translated at once. */
const scratch = Buffer.allocUnsafeSlow(1 << 18);

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
  /** Of the last event that was parsed and had a text alone; with what its records have around a text. */
  let shape: (EventShape & { readonly frame: Frame; readonly timeAt: number }) | null = null;
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
    const parts: Buffer[] = [];
    let length = 0;
    // Most blocks are one event, and rendering the frame of each took half of its translation.
    shape?.frame.before.write(time, shape.timeAt, "latin1");
    for (let at = 0; ; ) {
      if (shape && mostOf(block, shape, shape.frame) <= scratch.length) {
        const [end, made] = reframed([block, at], shape, shape.frame, [scratch, length]);
        parts.push(scratch.subarray(length, made));
        [at, length] = [end, made];
      }
      if (at === block.length) return over(block, parts);
      const end = block.indexOf("\n", at) + 1;
      const chunk = parse(block.subarray(at, end));
      parts.push(Buffer.from(written()));
      const next = shapeOf(block.toString("latin1", at, end + 1), chunk);
      if (next) shape = { ...next, ...textFrame(next.kind) };
      if (records.hasFailed()) shape = null;
      at = end;
    }
  }

  function textFrame(kind: TextKind): { readonly frame: Frame; readonly timeAt: number } {
    const message = kind === "content" ? { content: mark } : { thinking: mark };
    const line = Buffer.from(lineOf(records.piece(message, []))).toString("latin1");
    // The last ones: the model's name stands before them.
    const at = line.lastIndexOf(mark);
    return { frame: frameOf(line.slice(0, at), line.slice(at + mark.length)), timeAt: line.lastIndexOf(time) };
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

/** The parts over the block, which is ours; null: there is nothing. */
function over(block: Buffer, parts: readonly Buffer[]): Buffer | null {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const whole = length <= block.length ? block : Buffer.allocUnsafe(length);
  let at = 0;
  for (const part of parts) at += part.copy(whole, at);
  return length === 0 ? null : whole.subarray(0, length);
}
