// Takes server-sent event streams apart at any chunk boundary, and detects a cut stream by its last
// bytes. Pure; what the events mean does not matter here.

export interface SseParser {
  push(chunk: Uint8Array): void;
  /** The stream is over: what is still held back is delivered, or reported as garbage where it was cut off. */
  end(): void;
}

const fields = new Set(["data", "event", "id", "retry"]);
const lineFeed = 0x0a;

/**
 * `onData` gets the data of each event (lines joined by a line feed). `onGarbage` gets each line that is no part of an
 * event stream, and a line that the end of the stream cut off: llama.cpp's router ends a cut stream with the bare
 * text `proxy error: …` after, or inside, the last line.
 */
export function createSseParser(
  onData: (data: string) => void,
  onGarbage: (text: string) => void = () => {},
): SseParser {
  const decoder = new TextDecoder();
  let held: Uint8Array[] = [];
  let data: string[] = [];

  function dispatch(): void {
    if (data.length === 0) return;
    const text = data.join("\n");
    data = [];
    onData(text);
  }

  function takeLine(line: string): void {
    if (line === "") return dispatch();
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const field = colon < 0 ? line : line.slice(0, colon);
    if (!fields.has(field)) return onGarbage(line);
    if (field !== "data") return;
    const value = colon < 0 ? "" : line.slice(colon + 1);
    data.push(value.startsWith(" ") ? value.slice(1) : value);
  }

  /** All bytes held back, as text. Only whole lines are decoded, as a chunk may end inside a character. */
  function release(last: Uint8Array): string {
    if (held.length === 0) return decoder.decode(last);
    held.push(last);
    const whole = Buffer.concat(held);
    held = [];
    return decoder.decode(whole);
  }

  return {
    push(chunk) {
      const lines = chunk.lastIndexOf(lineFeed) + 1;
      if (lines > 0) {
        const text = release(chunk.subarray(0, lines));
        const parts = text.includes("\r") ? text.split(/\r\n|\r|\n/) : text.split("\n");
        parts.pop();
        for (const line of parts) takeLine(line);
      }
      // A copy, as the caller may use the chunk's memory again.
      if (lines < chunk.length) held.push(chunk.slice(lines));
    },
    end() {
      const parts = release(new Uint8Array(0)).split("\r");
      const cut = parts.pop() ?? "";
      for (const line of parts) takeLine(line);
      // Half an event is not delivered as one; an end mark has no other half.
      if (/^data: ?\[DONE\]\s*$/.test(cut)) takeLine(cut.trimEnd());
      else if (cut !== "" && !cut.startsWith(":")) onGarbage(cut);
      dispatch();
    },
  };
}

export interface DoneWatch {
  push(chunk: Buffer): void;
  /** True when the last line so far is `data: [DONE]`, whatever white space follows it. */
  done(): boolean;
}

/** The longest form of the mark, and the line end before it. */
const tailLength = "\ndata: [DONE]".length;

function isSpace(byte: number | undefined): boolean {
  return byte === lineFeed || byte === 0x0d || byte === 0x20 || byte === 0x09;
}

/**
 * Watches a stream that is passed through untouched. It reads a few bytes at the end of each chunk only. Without the
 * end mark a stream was cut, even where the connection was closed in good order.
 */
export function createDoneWatch(): DoneWatch {
  /** The last bytes up to the last one that is no space; fewer than `tailLength` only at the start of the stream. */
  let tail = "";
  /** White space since then. More of it than the tail can hold makes no difference. */
  let gap = "";
  return {
    push(chunk) {
      let end = chunk.length;
      while (end > 0 && isSpace(chunk[end - 1])) end--;
      if (end > 0) {
        const own = chunk.toString("latin1", Math.max(0, end - tailLength), end);
        tail = own.length === tailLength ? own : (tail + gap + own).slice(-tailLength);
        gap = "";
      }
      if (end < chunk.length)
        gap = (gap + chunk.toString("latin1", Math.max(end, chunk.length - tailLength))).slice(-tailLength);
    },
    done: () => /(?:^|[\r\n])data: ?\[DONE\]$/.test(tail),
  };
}
