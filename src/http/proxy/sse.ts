// Takes the engine's event streams apart. Pure.

/** Hands on the data of the events in whole lines: llama-server writes that of each in one line. */
export function eachEvent(lines: Buffer, onData: (data: string) => void): void {
  for (const line of lines.toString().split("\n"))
    if (line.startsWith("data:")) onData(line.slice("data:".length).trim());
}
