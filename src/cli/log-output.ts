// Where the log goes: JSON lines for programs, and for a person at a terminal one short line each.
import { Writable } from "node:stream";
import type { WriteStream } from "node:tty";
import pino, { type Logger } from "pino";
import { wrapped } from "./text.ts";

const levels: Readonly<Record<number, string>> = {
  10: "trace",
  20: "debug",
  30: "",
  40: "warning: ",
  50: "error: ",
  60: "fatal: ",
};
/** Of every line; a person has no use for them. */
const hidden = new Set(["level", "time", "pid", "hostname", "msg", "what", "err"]);

/** A log of its own, for output that does not depend on the log level. */
export function jsonLines(stream: WriteStream): Logger {
  return pino({}, stream);
}

export function logOutput(stream: WriteStream, isJson: boolean): WriteStream | Writable {
  if (isJson) return stream;
  return new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      // A progress bar may stand on the line.
      const start = stream.isTTY ? "\r\u001b[K" : "";
      for (const line of chunk.toString().split("\n"))
        if (line !== "")
          stream.write(
            `${start}${wrapped(readable(line), stream.isTTY ? stream.columns : undefined, " ".repeat(9))}\n`,
          );
      done();
    },
  });
}

function readable(line: string): string {
  const entry = JSON.parse(line) as Record<string, unknown>;
  const time = new Date(Number(entry["time"])).toTimeString().slice(0, 8);
  const { what, error, err } = entry as { what?: string; error?: string; err?: { message?: string } };
  const fields = Object.entries(entry).filter(([key]) => !hidden.has(key));
  const rest = fields.map(([key, value]) => `${key}=${typeof value === "string" ? value : JSON.stringify(value)}`);
  // Of an action what it was and why it failed is enough.
  const text = what === undefined ? [entry["msg"], err?.message, ...rest] : [error ? `${what}: ${error}` : what];
  return `${time} ${levels[Number(entry["level"])] ?? ""}${text.filter((part) => part !== undefined && part !== "").join("  ")}`;
}
