// Turns the engine's streams into the answers of Ollama's chat and generate, in pieces or whole.
import { performance } from "node:perf_hooks";
import { GatewayError } from "../../core/errors.ts";
import type { Translator } from "../proxy/generation.ts";
import { createSseParser } from "../proxy/sse.ts";
import { type ChatRecord, collect, createChatRecords, isErrorRecord } from "./wire/chat-records.ts";

export interface AnswerShape {
  /** The name that the client used. */
  readonly model: string;
  readonly topLogprobs: number;
  /** The engine's chunk as one of a chat completion. */
  readonly read: (chunk: unknown) => unknown;
  /** A record as the client gets it. */
  readonly write: (record: ChatRecord) => object;
}

export const streamHeaders = {
  "content-type": "application/x-ndjson",
  "cache-control": "no-cache",
  "x-accel-buffering": "no",
} as const;

export function rfc3339(): string {
  return new Date().toISOString();
}

/** A record a line, as they come. */
export function streamedAnswer(shape: AnswerShape): Translator {
  const records = recordsFor(shape);
  const lines = (list: readonly ChatRecord[]): string | null =>
    list.length === 0 ? null : list.map((record) => `${JSON.stringify(shape.write(record))}\n`).join("");
  return {
    family: "native",
    begin: () => streamHeaders,
    // White space before a record is part of no record; an empty line would be one that cannot be read.
    waiting: { headers: streamHeaders, tick: " " },
    chunk: (chunk) => lines(records.parse(chunk)),
    end: () => {
      const last = records.end();
      // The exchange renders it, with the reason why the answer was cut.
      const [record] = last;
      if (last.length === 1 && record && isErrorRecord(record))
        return new GatewayError("upstream_failed", record.error);
      return lines(last);
    },
  };
}

/** One record of all. */
export function wholeAnswer(shape: AnswerShape): Translator {
  const records = recordsFor(shape);
  const kept: ChatRecord[] = [];
  return {
    family: "native",
    begin: () => null,
    chunk: (chunk) => {
      kept.push(...records.parse(chunk));
      return null;
    },
    end: () => {
      const answer = collect([...kept, ...records.end()]);
      if (isErrorRecord(answer)) return new GatewayError("upstream_failed", answer.error);
      return JSON.stringify(shape.write(answer));
    },
  };
}

function recordsFor({ model, topLogprobs, read }: AnswerShape) {
  const records = createChatRecords({ model, topLogprobs, createdAt: rfc3339, now: () => performance.now() });
  let made: ChatRecord[] = [];
  const takeApart = createSseParser((data) => {
    if (data !== "[DONE]") made.push(...records.push(read(parsed(data))));
  });
  return {
    parse: (chunk: Buffer): readonly ChatRecord[] => {
      made = [];
      takeApart(chunk);
      return made;
    },
    end: records.end,
  };
}

/** What cannot be read ends the answer: the client must not take it for whole. */
function parsed(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    return { error: "the engine sent what is no JSON" };
  }
}
