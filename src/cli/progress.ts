// Progress of an install: a bar that is written over itself on a terminal, elsewhere a line now and then.
import type { WriteStream } from "node:tty";
import type { InstallProgress } from "../engines/install/install.ts";

export function installProgress(name: string, stream: WriteStream): (progress: InstallProgress) => void {
  return stream.isTTY ? bar(name, stream) : lines(name, stream);
}

function bar(name: string, stream: WriteStream): (progress: InstallProgress) => void {
  return ({ phase, detail, done, total }) => {
    const share = total > 0 ? Math.min(1, done / total) : 0;
    const gauge = total > 0 ? `[${"#".repeat(Math.round(share * 24)).padEnd(24)}] ${Math.floor(share * 100)}% ` : "";
    stream.write(
      `\r\u001b[K${`${name}: ${phase} ${gauge}${detail}`.slice(0, Math.max(20, (stream.columns || 80) - 1))}`,
    );
    if (phase === "check" && share >= 1) stream.write("\n");
  };
}

/** A log file wants to know that it goes on, not every package. */
function lines(name: string, stream: WriteStream): (progress: InstallProgress) => void {
  let last = "";
  return ({ phase, detail, done, total }) => {
    const quarter = total > 0 ? Math.floor((4 * done) / total) : 0;
    const key = phase === "resolve" ? `${phase} ${detail}` : `${phase} ${quarter}`;
    if (key === last) return;
    last = key;
    stream.write(`${name}: ${phase}${total > 0 ? ` ${25 * quarter}%` : ` ${detail}`}\n`);
  };
}
