// A line that is written over itself on a terminal; elsewhere a new line now and then.
import type { WriteStream } from "node:tty";

export function progressLine(stream: WriteStream): (label: string, done: number, total: number) => void {
  let lastLabel = "";
  let lastTenth = -1;
  return (label, done, total) => {
    const share = total > 0 ? Math.min(1, done / total) : 0;
    const percent = total > 0 ? `${Math.floor(share * 100)}%` : "";
    if (stream.isTTY) {
      const bar = total > 0 ? `[${"#".repeat(Math.round(share * 24)).padEnd(24)}] ` : "";
      stream.write(`\r\u001b[K${bar}${percent.padStart(4)} ${label}`.slice(0, Math.max(20, stream.columns ?? 80)));
      if (share >= 1) stream.write("\n");
      return;
    }
    const tenth = Math.floor(share * 10);
    if (label === lastLabel && tenth === lastTenth) return;
    lastLabel = label;
    lastTenth = tenth;
    stream.write(`${label} ${percent}\n`);
  };
}
