// Progress of an install and of a pull: one line that is overwritten on a terminal, elsewhere a line per step.
import type { WriteStream } from "node:tty";
import { amounts, type TransferStep } from "../core/quantities.ts";
import type { InstallProgress } from "../engines/install/build.ts";
import { wrapped } from "./text.ts";

interface InstallStep {
  readonly phase: InstallProgress["phase"];
  /** Where it is known. */
  readonly percent: number | undefined;
  readonly detail: string;
}

/** `log`: where there is no terminal. In a log file, one line per quarter is enough. */
export function installProgress(
  name: string,
  stream: WriteStream,
  log: (step: InstallStep) => void = ({ phase, percent, detail }) =>
    stream.write(`${name}: ${phase} ${percent === undefined ? detail : `${percent}%`}\n`),
): (progress: InstallProgress) => void {
  let last = "";
  return ({ phase, detail, done, total }) => {
    if (stream.isTTY) {
      overwrite(stream, `${name}: ${phase} ${total > 0 ? bar(done, total) : ""}${detail}`);
      if (phase === "check" && total > 0 && done >= total) stream.write("\n");
      return;
    }
    const percent = total > 0 ? 25 * Math.floor((4 * done) / total) : undefined;
    const step = `${phase} ${phase === "resolve" ? detail : percent}`;
    if (step !== last) log({ phase, percent, detail });
    last = step;
  };
}

export type TransferView = ReturnType<typeof transferProgress>;

export function transferProgress(name: string, stream: WriteStream) {
  const isTerminal = stream.isTTY;
  let isOpen = false;
  let lastNote = "";
  let lastTenth = -1;
  const rewrite = (text: string): void => {
    isOpen = true;
    overwrite(stream, text);
  };
  return {
    step: (step: TransferStep): void => {
      if (isTerminal) return rewrite(`${bar(step.completed, step.total)}${amounts(step)} ${name}`);
      // One line per tenth, for a log.
      const tenth = Math.floor(shareOf(step.completed, step.total) * 10);
      if (tenth !== lastTenth) stream.write(`${name}: ${10 * tenth}% ${amounts(step)}\n`);
      lastTenth = tenth;
    },
    /** A line beside the progress. */
    note: (text: string): void => {
      if (text === lastNote) return;
      lastNote = text;
      const line = `${name}: ${text}`;
      if (!isTerminal) {
        if (text !== "success") stream.write(`${line}\n`);
        return;
      }
      if (line.length <= widthOf(stream)) return rewrite(line);
      // The reason for a stall may take several lines, and stays.
      stream.write(`\r\u001b[K${wrapped(line, widthOf(stream), "  ")}\n`);
      isOpen = false;
    },
    /** Ends the line that is overwritten. */
    end: (): void => {
      if (isOpen) stream.write("\n");
      isOpen = false;
    },
  };
}

function overwrite(stream: WriteStream, text: string): void {
  stream.write(`\r\u001b[K${text.slice(0, widthOf(stream))}`);
}

function widthOf({ columns }: WriteStream): number {
  return Math.max(20, (columns || 80) - 1);
}

function bar(done: number, total: number): string {
  const share = shareOf(done, total);
  return `[${"#".repeat(Math.round(share * 24)).padEnd(24)}] ${Math.floor(share * 100)}% `;
}

function shareOf(done: number, total: number): number {
  return total > 0 ? Math.min(1, done / total) : 0;
}
