// Takes the engine's event streams apart at any chunk boundary. Pure.

const lineFeed = 0x0a;

/**
 * Hands on the data of events: llama-server writes that of each in one line. A line that was cut off is none. `take` gets each block
 * of whole lines first, and answers whether it has taken it.
 */
export function createSseParser(
  onData: (data: string) => void,
  take: (block: Buffer) => boolean = () => false,
): (chunk: Buffer) => void {
  let held: Buffer[] = [];
  return (chunk) => {
    // Only whole lines are decoded, as a chunk may end inside a character.
    const whole = chunk.lastIndexOf(lineFeed) + 1;
    const rest = chunk.subarray(whole);
    if (whole === 0) return void held.push(rest);
    const first = chunk.subarray(0, whole);
    const block = held.length === 0 ? first : Buffer.concat([...held, first]);
    held = rest.length > 0 ? [rest] : [];
    if (take(block)) return;
    for (const line of block.toString().split("\n"))
      if (line.startsWith("data:")) onData(line.slice("data:".length).trim());
  };
}
