// What the engines print, kept by model in bounded files, and for those who follow it. Output is collected as it comes and worked
// on four times a second: a model prints ten lines for each request.
import { compare } from "../../cache/layout/model-files.ts";
import { createSerial } from "../../core/serial.ts";
import type { LogFiles } from "./log-files.ts";

/** Whose line it is, and the line as it is kept. */
export type LineOwner = (line: string) => { readonly log: string; readonly line: string };

export interface LogLine {
  /** A model's id as the router has it, `router`, `whisper-server` or `speech`. */
  readonly log: string;
  /** With the time in front, ISO 8601. */
  readonly text: string;
}

export type EngineLogs = ReturnType<typeof createEngineLogs>;
export type EngineOutput = (text: string, from: "stdout" | "stderr") => void;

/** ms */
const gatherMs = 250;
/** Characters between two rounds; what comes beyond is dropped. A router whose child cannot be started prints 7 MB a second. */
const mostGathered = 1 << 20;
/** Lines; a load that fails prints its errors last. */
const mostRead = 200;
/** Characters without an end of line. */
const longestLine = 1 << 14;

interface Source {
  readonly ownerOf: LineOwner;
  /** The part of the last line that has come so far. */
  readonly rest: { stdout: string; stderr: string };
}

interface Piece {
  readonly source: Source;
  readonly from: "stdout" | "stderr";
  readonly at: number;
  readonly text: string;
}

export function createEngineLogs(options: {
  readonly files: LogFiles;
  /** ms since the epoch. */
  readonly now: () => number;
  readonly warn: (message: string, fields: object) => void;
}) {
  const { files, now } = options;
  const secrets = new Set<string>();
  const followers = new Set<(lines: readonly LogLine[]) => void>();
  let pieces: Piece[] = [];
  let gathered = 0;
  let dropped = 0;
  let timer: NodeJS.Timeout | undefined;
  let isFailing = false;
  const serialized = createSerial();

  function gather(piece: Piece): void {
    if (gathered + piece.text.length > mostGathered) {
      dropped += piece.text.length;
      return;
    }
    gathered += piece.text.length;
    pieces.push(piece);
    timer ??= setTimeout(work, gatherMs).unref();
  }

  function work(): void {
    clearTimeout(timer);
    timer = undefined;
    const lines = pieces.flatMap((piece) => linesOf(piece, secrets));
    if (dropped > 0)
      lines.push({ log: "router", text: `${timeOf(now())} ${dropped} characters of output were dropped` });
    pieces = [];
    gathered = 0;
    dropped = 0;
    if (lines.length === 0) return;
    const byLog = new Map<string, string>();
    for (const { log, text } of lines) byLog.set(log, `${byLog.get(log) ?? ""}${text}\n`);
    void serialized(() => write(byLog));
    for (const follower of followers) follower(lines);
  }

  async function write(byLog: ReadonlyMap<string, string>): Promise<void> {
    try {
      for (const [log, text] of byLog) await files.append(log, text);
      isFailing = false;
    } catch (error) {
      // Once: it would be four times a second.
      if (!isFailing) options.warn("the engines' output could not be written", { error: String(error) });
      isFailing = true;
    }
  }

  /** With every line so far, and none that a follower who comes in the same turn gets. */
  function reading<T>(read: () => Promise<T>): Promise<T> {
    work();
    return serialized(read);
  }

  const linesIn = async (log: string, tail: number): Promise<LogLine[]> =>
    ((await files.read(log, tail)) ?? "").split("\n").flatMap((text) => (text === "" ? [] : { log, text }));

  return {
    /** For the output of one engine. */
    outputOf: (ownerOf: LineOwner): EngineOutput => {
      const source: Source = { ownerOf, rest: { stdout: "", stderr: "" } };
      return (text, from) => gather({ source, from, at: now(), text });
    },
    /** A key that is never written. */
    hide: (secret: string): void => void secrets.add(secret),
    /** Names of the logs that there are. */
    names: () => reading(files.names),
    /**
     * The last lines of one log; null: those of each, by their times. No more is read: of 100 models the gateway held the event loop for
     * 0.8 s, and took 600 MB.
     */
    read: (log: string | null, tail: number): Promise<readonly LogLine[]> =>
      reading(async () => {
        const logs = log === null ? await files.names() : [log];
        const lines: LogLine[] = [];
        for (const name of logs) for (const line of await linesIn(name, tail)) lines.push(line);
        const timeIn = ({ text }: LogLine): string => text.slice(0, timeLength);
        return log === null ? lines.toSorted((a, b) => compare(timeIn(a), timeIn(b))) : lines;
      }),
    /** What a model has printed in the last so many ms, at most its last lines, without their times. */
    readLast: (log: string, ms: number): Promise<readonly string[]> =>
      reading(async () => {
        const since = now() - ms;
        const lines = (await linesIn(log, mostRead)).map(({ text }) => text);
        const news = lines.filter((text) => Date.parse(text.slice(0, timeLength)) >= since);
        return news.map((text) => text.slice(timeLength + 1));
      }),
    /** Calls back with each round's lines; call the result to stop. */
    follow: (follower: (lines: readonly LogLine[]) => void): (() => void) => {
      followers.add(follower);
      return () => void followers.delete(follower);
    },
    followers: () => followers.size,
    /** Resolves when all output so far is in the files. */
    flush: () => reading(async () => undefined),
  };
}

/** Those that the piece ends, without the secrets. */
function linesOf({ source, from, at, text }: Piece, secrets: ReadonlySet<string>): LogLine[] {
  let shown = source.rest[from] + text;
  for (const secret of secrets) shown = shown.replaceAll(secret, "***");
  const parts = shown.split("\n");
  const rest = parts.pop() ?? "";
  if (rest.length > longestLine) parts.push(rest);
  source.rest[from] = rest.length > longestLine ? "" : rest;
  return parts.flatMap((part) => {
    if (part.trim() === "") return [];
    const { log, line } = source.ownerOf(part);
    return [{ log, text: `${timeOf(at)} ${line}` }];
  });
}

/** `2027-03-01T12:00:00.000Z` */
const timeLength = 24;

/** The last of them, each with its end; with the names of their logs behind their times, where they are of several. */
export function logText(lines: readonly LogLine[], tail: number, withNames: boolean): string {
  const last = tail === 0 ? [] : lines.slice(-tail);
  return last.map(({ log, text }) => `${withNames ? text.replace(" ", () => ` ${log} `) : text}\n`).join("");
}

function timeOf(at: number): string {
  return new Date(at).toISOString();
}
