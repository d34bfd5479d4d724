// Progress of an install and of a pull: a bar that is written over itself on a terminal, elsewhere a line now and then.
import type { WriteStream } from "node:tty";
import type { InstallProgress } from "../engines/install/install.ts";
import { bytesText, durationText } from "./amounts.ts";
import { wrapped } from "./wrap.ts";

export function installProgress(name: string, stream: WriteStream): (progress: InstallProgress) => void {
  if (stream.isTTY) return installBar(name, stream);
  return installSteps(({ phase, percent, detail }) =>
    stream.write(`${name}: ${phase} ${percent === undefined ? detail : `${percent}%`}\n`),
  );
}

export function installBar(name: string, stream: WriteStream): (progress: InstallProgress) => void {
  return ({ phase, detail, done, total }) => {
    const share = total > 0 ? Math.min(1, done / total) : 0;
    const gauge = total > 0 ? `[${"#".repeat(Math.round(share * 24)).padEnd(24)}] ${Math.floor(share * 100)}% ` : "";
    stream.write(
      `\r\u001b[K${`${name}: ${phase} ${gauge}${detail}`.slice(0, Math.max(20, (stream.columns || 80) - 1))}`,
    );
    if (phase === "check" && share >= 1) stream.write("\n");
  };
}

interface InstallStep {
  readonly phase: InstallProgress["phase"];
  /** Where it is known. */
  readonly percent?: number;
  readonly detail: string;
}

/** In a log file, one line per quarter is enough. */
export function installSteps(tell: (step: InstallStep) => void): (progress: InstallProgress) => void {
  let last = "";
  return ({ phase, detail, done, total }) => {
    const quarter = total > 0 ? Math.floor((4 * done) / total) : 0;
    const key = phase === "resolve" ? `${phase} ${detail}` : `${phase} ${quarter}`;
    if (key === last) return;
    last = key;
    tell({ phase, detail, ...(total > 0 ? { percent: 25 * quarter } : {}) });
  };
}

export interface TransferStep {
  /** Bytes of the whole. */
  readonly completed: number;
  readonly total: number;
  readonly bytesPerSecond: number;
  readonly secondsLeft: number | null;
}

export interface TransferView {
  step(step: TransferStep): void;
  /** A line beside the progress. */
  say(text: string): void;
  /** The line is given free. */
  end(): void;
}

export function transferProgress(name: string, stream: WriteStream): TransferView {
  return stream.isTTY ? transferBar(name, stream) : transferLines(name, stream);
}

function transferBar(name: string, stream: WriteStream): TransferView {
  let open = false;
  let said = "";
  const columns = Math.max(20, (stream.columns || 80) - 1);
  const write = (text: string): void => {
    open = true;
    stream.write(`\r\u001b[K${text.slice(0, columns)}`);
  };
  return {
    step: (step) => {
      const share = shareOf(step);
      write(`[${"#".repeat(Math.round(share * 24)).padEnd(24)}] ${Math.floor(share * 100)}% ${amounts(step)} ${name}`);
    },
    say: (text) => {
      const line = `${name}: ${text}`;
      if (line === said) return;
      said = line;
      if (line.length <= columns) return write(line);
      // The reason for a stall may take several lines, and stays.
      stream.write(`\r\u001b[K${wrapped(line, columns, "  ")}\n`);
      open = false;
    },
    end: () => {
      if (open) stream.write("\n");
      open = false;
    },
  };
}

/** One line per tenth, for a log. */
function transferLines(name: string, stream: WriteStream): TransferView {
  let tenth = -1;
  let said = "";
  return {
    step: (step) => {
      const now = Math.floor(shareOf(step) * 10);
      if (now === tenth) return;
      tenth = now;
      stream.write(`${name}: ${10 * now}% ${amounts(step)}\n`);
    },
    say: (text) => {
      if (text !== said && text !== "success") stream.write(`${name}: ${text}\n`);
      said = text;
    },
    end: () => undefined,
  };
}

function shareOf({ completed, total }: TransferStep): number {
  return total > 0 ? Math.min(1, completed / total) : 0;
}

/** Bytes, rate and time left, for a person. */
export function amounts({ completed, total, bytesPerSecond, secondsLeft }: TransferStep): string {
  const rate = bytesPerSecond > 0 ? ` ${bytesText(bytesPerSecond)}/s` : "";
  const left = secondsLeft !== null && secondsLeft > 0 ? ` ${durationText(secondsLeft)} left` : "";
  return `${bytesText(completed)} of ${bytesText(total)}${rate}${left}`;
}
