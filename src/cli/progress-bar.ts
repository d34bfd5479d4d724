// A step of progress as a person reads it, and the one line of a terminal that it overwrites.
import type { WriteStream } from "node:tty";
import { bytesText, durationText } from "./text.ts";

export function overwrite(stream: WriteStream, text: string): void {
  stream.write(`\r\u001b[K${text.slice(0, widthOf(stream))}`);
}

export function widthOf({ columns }: WriteStream): number {
  return Math.max(20, (columns || 80) - 1);
}

export function bar(done: number, total: number): string {
  const share = shareOf(done, total);
  return `[${"#".repeat(Math.round(share * 24)).padEnd(24)}] ${Math.floor(share * 100)}% `;
}

export function shareOf(done: number, total: number): number {
  return total > 0 ? Math.min(1, done / total) : 0;
}

export interface TransferStep {
  /** Bytes of the whole. */
  readonly completed: number;
  readonly total: number;
  readonly bytesPerSecond?: number | undefined;
  readonly secondsLeft?: number | null | undefined;
}

/** Bytes, rate and time left, for a person. */
export function amounts({ completed, total, bytesPerSecond = 0, secondsLeft = null }: TransferStep): string {
  const rate = bytesPerSecond > 0 ? ` ${bytesText(bytesPerSecond)}/s` : "";
  const left = secondsLeft !== null && secondsLeft > 0 ? ` ${durationText(secondsLeft)} left` : "";
  return `${bytesText(completed)} of ${bytesText(total)}${rate}${left}`;
}
