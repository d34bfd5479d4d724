// The kinds of chat that the clients of the long runs hold: what to send, and how to read the answer. No sockets.

export type Dialect = "compat" | "whole" | "native" | "messages";

/** What has been read of an answer with status 200. */
export interface Reading {
  readonly text: string;
  /** It said why it stopped, and that was the end of what the model had to say. */
  readonly isFinished: boolean;
  /** The dialect's own end mark has come. */
  readonly isTerminated: boolean;
  readonly error: AnswerError | null;
  /** What is none of the dialect. */
  readonly garbage: string | null;
}

export interface AnswerError {
  /** Null where the dialect has none (native). */
  readonly code: string | null;
  readonly message: string;
}

export interface DialectSpeaker {
  /** Below the prefix of its family. */
  readonly path: string;
  readonly family: "compat" | "native";
  body(model: string): object;
  /** Reads all that has come so far; `isEnd`: no more will. */
  read(text: string, isEnd: boolean): Reading;
}

const messages = [{ role: "user", content: "go on" }];

interface Mutable {
  text: string;
  isFinished: boolean;
  isTerminated: boolean;
  error: AnswerError | null;
  garbage: string | null;
}

function blank(): Mutable {
  return { text: "", isFinished: false, isTerminated: false, error: null, garbage: null };
}

interface AnyChunk {
  readonly choices?: readonly {
    readonly delta?: { readonly content?: string | null };
    readonly message?: { readonly content?: string | null };
    readonly finish_reason?: string | null;
  }[];
  readonly error?: unknown;
  readonly message?: { readonly content?: string };
  readonly done?: boolean;
  readonly done_reason?: string;
  readonly type?: string;
  readonly delta?: { readonly text?: string; readonly stop_reason?: string | null };
}

export function errorOf(body: unknown): AnswerError | null {
  const { error } = (body ?? {}) as AnyChunk;
  if (typeof error === "string") return { code: null, message: error };
  if (typeof error !== "object" || error === null) return null;
  const { code, message } = error as { code?: unknown; message?: unknown };
  return { code: typeof code === "string" ? code : null, message: typeof message === "string" ? message : "" };
}

/** Each whole line that is not empty; an unfinished one only at the end. */
function lines(text: string, isEnd: boolean): string[] {
  const all = text.split("\n");
  if (!isEnd) all.pop();
  return all.map((line) => line.trim()).filter((line) => line !== "");
}

function parsed(line: string, into: Mutable): AnyChunk | null {
  try {
    return JSON.parse(line) as AnyChunk;
  } catch {
    into.garbage ??= line.slice(0, 200);
    return null;
  }
}

function readSse(text: string, isEnd: boolean, take: (chunk: AnyChunk, into: Mutable) => void): Reading {
  const into = blank();
  for (const line of lines(text, isEnd)) {
    if (line.startsWith(":") || line.startsWith("event:")) continue;
    const data = /^data: ?(.*)$/.exec(line)?.[1];
    if (data === "[DONE]") into.isTerminated = true;
    else if (data === undefined) into.garbage ??= line.slice(0, 200);
    else {
      const chunk = parsed(data, into);
      if (chunk) {
        into.error ??= errorOf(chunk);
        take(chunk, into);
      }
    }
  }
  return into;
}

export const dialects: Readonly<Record<Dialect, DialectSpeaker>> = {
  compat: {
    family: "compat",
    path: "/chat/completions",
    body: (model) => ({ model, stream: true, messages }),
    read: (text, isEnd) =>
      readSse(text, isEnd, ({ choices: [choice] = [] }, into) => {
        into.text += choice?.delta?.content ?? "";
        if (choice?.finish_reason === "stop") into.isFinished = true;
      }),
  },
  messages: {
    family: "compat",
    path: "/messages",
    body: (model) => ({ model, stream: true, max_tokens: 1000, messages }),
    read: (text, isEnd) =>
      readSse(text, isEnd, ({ type, delta }, into) => {
        if (type === "content_block_delta") into.text += delta?.text ?? "";
        if (type === "message_delta" && delta?.stop_reason === "end_turn") into.isFinished = true;
        if (type === "message_stop") into.isTerminated = true;
      }),
  },
  native: {
    family: "native",
    path: "/chat",
    body: (model) => ({ model, stream: true, messages }),
    read: (text, isEnd) => {
      const into = blank();
      for (const line of lines(text, isEnd)) {
        const record = parsed(line, into);
        if (!record) continue;
        into.error ??= errorOf(record);
        into.text += record.message?.content ?? "";
        if (record.done === true) into.isTerminated = true;
        if (record.done_reason === "stop") into.isFinished = true;
      }
      return into;
    },
  },
  whole: {
    family: "compat",
    path: "/chat/completions",
    body: (model) => ({ model, messages }),
    read: (text, isEnd) => {
      const into = blank();
      if (!isEnd) return into;
      const body = parsed(text, into);
      into.error = errorOf(body);
      into.text = body?.choices?.[0]?.message?.content ?? "";
      into.isFinished = body?.choices?.[0]?.finish_reason === "stop";
      into.isTerminated = body !== null;
      return into;
    },
  },
};
