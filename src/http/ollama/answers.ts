// Turns the engine's streams into the answers of Ollama's chat and generate, in pieces or whole.
import { performance } from "node:perf_hooks";
import { GatewayError } from "../../core/errors.ts";
import { eachEvent, frameOf, reframed } from "../../core/event-stream.ts";
import { parseJson } from "../../core/json.ts";
import type { Translator } from "../proxy/generation.ts";
import { streamHeaders } from "../server/raw-reply.ts";
import { type ChatRecord, createChatRecords, merged } from "./wire/chat-records.ts";
import { type EventShape, lastShape } from "./wire/plain-text.ts";

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
  const createdAt = (): string => new Date().toISOString();
  const records = createChatRecords({ model, topLogprobs, createdAt, now: () => performance.now() });
  let made: ChatRecord[] = [];
  /** Of the last event that was parsed; null: it has more than a text. */
  let shape: EventShape | null = null;
  let figures: Pick<ChatRecord, "prompt_eval_count" | "eval_count"> = {};

  function parse(block: Buffer): void {
    let last: unknown = null;
    eachEvent(block, (data) => {
      // What cannot be read ends the answer: the client must not take it for whole.
      last = data === "[DONE]" ? null : read(parseJson(data) ?? { error: "the engine sent what is no JSON" });
      if (last !== null) made.push(...records.push(last));
    });
    shape = stream && !records.hasFailed() ? lastShape(block, last) : null;
  }

  /** Records of events of the known shape, which take no parse; null: not all are. */
  function cutOut(block: Buffer): Buffer | null {
    if (!shape) return null;
    const message = shape.kind === "content" ? { content: mark } : { thinking: mark };
    const record = Buffer.from(`${JSON.stringify(write(records.piece(message, [])))}\n`).toString("latin1");
    // The last one: the model's name stands before it.
    const at = record.lastIndexOf(mark);
    return reframed(block, shape, frameOf(record.slice(0, at), record.slice(at + mark.length)));
  }

  const written = (): string | null => {
    const lines = made.map((record) => `${JSON.stringify(write(record))}\n`);
    made = [];
    return lines.length === 0 ? null : lines.join("");
  };
  return {
    family: "native",
    begin: () => (stream ? recordHeaders : null),
    // White space before a record is part of no record; an empty line would be one that cannot be read.
    ...(stream && { waiting: { headers: recordHeaders, tick: " " } }),
    lines: (block) => {
      const cut = cutOut(block);
      if (cut) return cut;
      parse(block);
      return stream ? written() : null;
    },
    end: () => {
      const last = records.end();
      // The exchange renders it, with the reason why the answer was cut.
      if (last instanceof GatewayError) return last;
      figures = last;
      if (!stream) return JSON.stringify(write(merged(made, last)));
      made.push(last);
      return written();
    },
    count: (meter) => meter.addTokens(figures.prompt_eval_count ?? 0, figures.eval_count ?? 0),
  };
}
