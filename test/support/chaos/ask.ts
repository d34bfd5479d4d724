// One chat over a connection of its own, and what became of it. Says what was seen, not whether it was allowed.
import { request } from "node:http";
import { type AnswerError, type Dialect, dialects, errorOf, type Reading } from "./dialects.ts";

/**
 * `whole`: the known text, with a finish reason and an end mark. `error`: an answer with another status, or an error
 * frame after a part of the text. `lost`: the connection broke before the answer's own end. `refused`: nobody listened.
 * `cut`: an orderly end before the text's own. `foreign`: text that is not the model's. `hung`: no end within the limit.
 */
export type Outcome = "whole" | "error" | "lost" | "refused" | "cut" | "foreign" | "hung";

export interface Answer {
  readonly outcome: Outcome;
  /** Null where no answer began. */
  readonly status: number | null;
  readonly error: AnswerError | null;
  /** For a person: what was seen, in short. */
  readonly detail: string;
  /** ms until the first of the text; null where none came. */
  readonly firstTextMs: number | null;
}

export interface Target {
  /** `http://127.0.0.1:PORT` */
  readonly origin: string;
  readonly prefixes: Readonly<Record<"compat" | "native", string>>;
  readonly headers: Readonly<Record<string, string>>;
}

export interface Question {
  readonly dialect: Dialect;
  readonly model: string;
  /** The text that the model says. */
  readonly expected: string;
  readonly limitMs: number;
  /** The first of the text has come. */
  readonly onText: () => void;
}

export function ask(target: Target, { dialect, model, expected, limitMs, onText }: Question): Promise<Answer> {
  const speaker = dialects[dialect];
  const body = JSON.stringify(speaker.body(model));
  const began = performance.now();
  return new Promise((resolve) => {
    let status: number | null = null;
    let text = "";
    let firstTextMs: number | null = null;
    const settle = (end: Ending): void => {
      clearTimeout(limit);
      resolve({ ...judged(speaker.read(text, true), expected, status, text, end), status, firstTextMs });
    };
    // Without an agent: a connection that is used again may be closed just then, which would look like a fault.
    const sent = request(`${target.origin}${target.prefixes[speaker.family]}${speaker.path}`, {
      agent: false,
      method: "POST",
      headers: { "content-type": "application/json", "content-length": Buffer.byteLength(body), ...target.headers },
    });
    const limit = setTimeout(() => {
      settle({ kind: "hung", why: `no end within ${limitMs} ms` });
      sent.destroy();
    }, limitMs);
    sent.on("error", (error: NodeJS.ErrnoException) => {
      settle({ kind: error.code === "ECONNREFUSED" ? "refused" : "lost", why: error.message });
    });
    sent.on("response", (response) => {
      status = response.statusCode ?? 0;
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        text += chunk;
        if (firstTextMs !== null || status !== 200) return;
        if (dialect !== "whole" && speaker.read(text, false).text === "") return;
        firstTextMs = performance.now() - began;
        onText();
      });
      response.on("error", (error) => settle({ kind: "lost", why: error.message }));
      response.on("end", () => settle({ kind: response.complete ? "ended" : "lost", why: "the connection broke" }));
    });
    sent.end(body);
  });
}

interface Ending {
  readonly kind: "ended" | "lost" | "refused" | "hung";
  readonly why: string;
}

function judged(
  reading: Reading,
  expected: string,
  status: number | null,
  raw: string,
  { kind, why }: Ending,
): Pick<Answer, "outcome" | "error" | "detail"> {
  if (status !== null && status !== 200 && kind === "ended") {
    const error = parsedError(raw);
    return { outcome: "error", error, detail: `${status} ${raw.slice(0, 300)}` };
  }
  const seen = `${reading.text.length} of ${expected.length} characters, ...${raw.slice(-200)}`;
  if (!expected.startsWith(reading.text)) return { outcome: "foreign", error: null, detail: raw.slice(0, 400) };
  // An error frame tells the client all that it can be told, however the connection goes afterwards.
  if (reading.error) return { outcome: "error", error: reading.error, detail: `after ${seen}` };
  const isWhole = reading.text === expected && reading.isFinished && reading.isTerminated && reading.garbage === null;
  if (isWhole) return { outcome: "whole", error: null, detail: "" };
  if (kind !== "ended") return { outcome: kind, error: null, detail: `${why}: ${seen}` };
  return { outcome: "cut", error: null, detail: seen };
}

function parsedError(raw: string): AnswerError | null {
  try {
    return errorOf(JSON.parse(raw));
  } catch {
    return null;
  }
}
