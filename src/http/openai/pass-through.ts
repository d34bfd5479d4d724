// Passes the engine's answer on as it comes, and detects a cut stream by how it ends. Changes no byte.
import { GatewayError } from "../../core/errors.ts";
import type { Translator } from "../proxy/generation.ts";
import type { Dialect } from "../server/errors.ts";

/** How the streams of a route end. */
export type StreamKind = "done" | "responses" | "messages" | "llama";

interface Marks {
  readonly dialect: Dialect;
  /** Beginnings of lines: one of them is in the last event of a whole stream. */
  readonly ends: readonly Buffer[];
  /** With these the engine reports that it cannot finish. */
  readonly errors: readonly Buffer[];
}

/** Seen on llama-server build 11669. A line break within a text is escaped, so no text of a model is a mark. */
const marksOf: Readonly<Record<StreamKind, Marks>> = {
  done: { dialect: "compat", ends: [], errors: lines('data: {"error"') },
  responses: {
    dialect: "responses",
    ends: lines("event: response.completed", "event: response.incomplete", "event: response.failed"),
    errors: lines('data: {"error"', "event: error"),
  },
  messages: { dialect: "messages", ends: lines("event: message_stop"), errors: lines("event: error") },
  llama: { dialect: "compat", ends: [], errors: lines('data: {"error"') },
};

/** Of llama.cpp's own completions: no other place of a frame can hold this, as quotes within texts are escaped. */
const stopMark = Buffer.from('"stop":true');
const lineFeed = 0x0a;

const streamHeaders = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache",
  "x-accel-buffering": "no",
};

function lines(...texts: readonly string[]): Buffer[] {
  return texts.map((text) => Buffer.from(`\n${text}`));
}

function beginsLine(block: Buffer, mark: Buffer): boolean {
  return block.includes(mark) || block.subarray(0, mark.length - 1).equals(mark.subarray(1));
}

/** Tells whether a stream, given in blocks of whole lines, is whole. */
interface EndWatch {
  push(block: Buffer): void;
  isWhole(): boolean;
  /** The engine has reported why it is not. */
  isTold(): boolean;
}

function createEndWatch(kind: Exclude<StreamKind, "done">): EndWatch {
  const { ends, errors } = marksOf[kind];
  let ended = false;
  let told = false;
  let tail = "";
  return {
    push: (block) => {
      told ||= errors.some((mark) => beginsLine(block, mark));
      if (kind === "llama") ended ||= block.includes(stopMark);
      else ended ||= ends.some((mark) => beginsLine(block, mark));
      tail = (tail + block.toString("latin1", Math.max(0, block.length - 4))).slice(-4);
    },
    // The last event is an event once the blank line after it has come.
    isWhole: () => ended && /\n\r?\n$/.test(tail),
    isTold: () => told,
  };
}

const doneMark = /(?:^|[\r\n])data: ?\[DONE\][ \t\r\n]*$/;

function isBlank(block: Buffer): boolean {
  return (block[0] ?? 0) <= 0x20 && !/\S/.test(block.toString("latin1"));
}

/** Of a chat an error, or `[DONE]`, is the last line, so only the last block is searched: a search in each cost a tenth of a fast stream. */
function createChatEndWatch(): EndWatch {
  let last: Buffer = Buffer.alloc(0);
  return {
    push: (block) => {
      if (!isBlank(block)) last = block;
    },
    isWhole: () => doneMark.test(last.toString("latin1")),
    isTold: () => marksOf.done.errors.some((mark) => beginsLine(last, mark)),
  };
}

/**
 * A stream passes line by line, so that what follows a cut stands on a line of its own; any other answer is kept until it
 * is whole.
 */
export function passThrough(kind: StreamKind): Translator {
  return new PassThrough(kind);
}

const waiting = { headers: streamHeaders, tick: ": waiting\n\n" };

class PassThrough implements Translator {
  readonly family: Dialect;
  readonly waiting = waiting;
  readonly #kind: StreamKind;
  /** Null: the answer is no stream. */
  #watch: EndWatch | null = null;
  #kept: Buffer[] = [];

  constructor(kind: StreamKind) {
    this.#kind = kind;
    this.family = marksOf[kind].dialect;
  }

  begin(contentType: string): Record<string, string> | null {
    if (!contentType.startsWith("text/event-stream")) return null;
    this.#watch = this.#kind === "done" ? createChatEndWatch() : createEndWatch(this.#kind);
    return streamHeaders;
  }

  chunk(chunk: Buffer): Buffer | null {
    const block = this.#watch ? this.#lines(chunk) : null;
    if (!this.#watch) this.#kept.push(chunk);
    else if (block) this.#watch.push(block);
    return block;
  }

  end(): Buffer | GatewayError | null {
    const rest = this.#taken();
    if (!this.#watch) return rest;
    this.#watch.push(rest);
    if (this.#watch.isWhole()) return rest.length > 0 ? rest : null;
    // The engine has said why: a second word from us would hide it. Without either a stream was cut, however orderly
    // its connection was closed.
    return this.#watch.isTold()
      ? null
      : new GatewayError("upstream_failed", "the engine broke off before the response was complete");
  }

  /** What has been kept, and the lines that the chunk makes whole. */
  #lines(chunk: Buffer): Buffer | null {
    const end = chunk.at(-1) === lineFeed ? chunk.length : chunk.lastIndexOf(lineFeed) + 1;
    if (end > 0 && end === chunk.length && this.#kept.length === 0) return chunk;
    if (end > 0) this.#kept.push(chunk.subarray(0, end));
    const whole = end > 0 ? this.#taken() : null;
    if (end < chunk.length) this.#kept.push(chunk.subarray(end));
    return whole;
  }

  #taken(): Buffer {
    const [first] = this.#kept;
    const all = this.#kept.length === 1 && first ? first : Buffer.concat(this.#kept);
    this.#kept = [];
    return all;
  }
}
