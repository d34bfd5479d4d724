// Passes the engine's answer on as it comes, and detects a cut stream by how it ends. Changes no byte.
import { GatewayError } from "../../core/errors.ts";
import { countTokens, type TokenCounter } from "../../core/token-counts.ts";
import type { Translator } from "../proxy/generation.ts";
import type { Dialect } from "../server/errors.ts";
import { streamHeaders } from "../server/raw-reply.ts";

/** How the streams of a route end. */
export type StreamKind = "done" | "responses" | "messages" | "llama";

/**
 * How the last event of a whole stream looks, or of one of which the engine has reported that it cannot finish (llama-server build
 * 11669). A line break or a quote within a text is escaped, so no text of a model matches. Anthropic's clients take no notice of an
 * event without a name.
 */
const ends: Readonly<Record<StreamKind, { readonly dialect: Dialect; readonly lastEvent: RegExp }>> = {
  done: { dialect: "compat", lastEvent: /(?:^|[\r\n])data: ?(?:\[DONE\][ \t\r\n]*$|\{"error")/ },
  responses: {
    dialect: "responses",
    lastEvent:
      /(?:^|\n)(?:event: response\.(?:completed|incomplete|failed)\r?\n[^]*\n\r?\n$|event: error|data: \{"error")/,
  },
  messages: { dialect: "messages", lastEvent: /(?:^|\n)event: (?:message_stop\r?\n[^]*\n\r?\n$|error)/ },
  llama: { dialect: "compat", lastEvent: /"stop":true[^]*\n\r?\n$|(?:^|\n)data: \{"error"/ },
};

const [lineFeed, carriageReturn, colon] = [0x0a, 0x0d, 0x3a] as const;

const headers = streamHeaders("text/event-stream; charset=utf-8");

/**
 * A stream passes line by line, so that what follows a cut stands on a line of its own; any other answer is kept until it
 * is whole. `computes`: the tokens that it counts were computed.
 */
export function passThrough(kind: StreamKind, computes = true): Translator {
  return new PassThrough(kind, computes);
}

const waiting = { headers, tick: ": waiting\n\n" };

class PassThrough implements Translator {
  readonly family: Dialect;
  readonly waiting = waiting;
  readonly #lastEvent: RegExp;
  #isStream = false;
  /** Of an answer that is no stream, though one was asked for. */
  readonly #kept: Buffer[] = [];
  /** Blocks of whole lines: the last event, and what came with it. */
  #last: Buffer[] = [];
  /** The event before it: the end mark may come alone, after the event that has the counts. */
  #before: Buffer[] = [];
  /** Anthropic's first event has the count of the prompt. */
  #takesHead: boolean;
  #head = "";
  /** Of the whole answer. */
  #end = "";
  readonly #computes: boolean;

  constructor(kind: StreamKind, computes: boolean) {
    this.#takesHead = kind === "messages";
    this.#computes = computes;
    this.family = ends[kind].dialect;
    this.#lastEvent = ends[kind].lastEvent;
  }

  begin(contentType: string): Record<string, string> | null {
    this.#isStream = contentType.startsWith("text/event-stream");
    return this.#isStream ? headers : null;
  }

  lines(block: Buffer): Buffer | null {
    if (!this.#isStream) {
      this.#kept.push(Buffer.from(block));
      return null;
    }
    if (this.#takesHead) this.#takeHead(block);
    this.#note(block);
    return block;
  }

  end(rest: Buffer): Buffer | GatewayError | null {
    if (!this.#isStream) {
      const whole = this.#kept.length === 0 ? rest : Buffer.concat([...this.#kept, rest]);
      this.#end = endOf(whole);
      return whole;
    }
    this.#note(rest);
    // A stream that was cut has no such end, however orderly its connection was closed. Where the engine has said why, a second
    // word from us would hide it.
    this.#end = Buffer.concat(this.#last).toString("latin1");
    if (!this.#lastEvent.test(this.#end))
      return new GatewayError("upstream_failed", "the engine broke off before the response was complete");
    return rest.length > 0 ? rest : null;
  }

  count(counter: TokenCounter): void {
    if (!this.#computes) return;
    const end = this.#end.slice(-countsWithin);
    if (this.#head === "" && countTokens(end, counter)) return;
    countTokens(this.#head + endOf(Buffer.concat(this.#before)) + end, counter);
  }

  #takeHead(block: Buffer): void {
    this.#takesHead = false;
    this.#head = block.toString("latin1", 0, countsWithin);
  }

  #note(block: Buffer): void {
    if (!isBlank(block) && endsEvent(this.#last.at(-1))) {
      const before = this.#last;
      this.#last = this.#before;
      this.#last.length = 0;
      this.#before = before;
    }
    this.#last.push(lastEventOf(block));
  }
}

/** Bytes of an answer's beginning or end that have its counts. */
const countsWithin = 1_024;

/** Bytes. */
const searchedFrom = 4_096;

function endOf(block: Buffer): string {
  return block.toString("latin1", Math.max(0, block.length - countsWithin));
}

/** A copy of its last event at least, and of the counts before it. A search in each small block cost a tenth of a fast stream. */
function lastEventOf(block: Buffer): Buffer {
  const from = block.length < searchedFrom ? 0 : block.lastIndexOf("\n\n", -3) - countsWithin;
  return Buffer.from(block.subarray(Math.max(0, from)));
}

/** White space or a comment. */
function isBlank(block: Buffer): boolean {
  const [first = 0] = block;
  return first === colon || (first <= 0x20 && !/\S/.test(block.toString("latin1")));
}

/** With a blank line. */
function endsEvent(block: Buffer | undefined): boolean {
  if (!block || block.at(-1) !== lineFeed) return false;
  const before = block.length - (block.at(-2) === carriageReturn ? 3 : 2);
  return before < 0 || block[before] === lineFeed;
}
