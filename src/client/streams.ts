// Splits a streamed response into lines, and those into server-sent events.

/** Lines without their ends. Leaving the loop closes the stream. */
export async function* linesOf(stream: ReadableStream<Uint8Array> | null): AsyncGenerator<string, void, undefined> {
  if (!stream) return;
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let isOver = false;
  try {
    while (!isOver) {
      const { done, value } = await reader.read();
      isOver = done;
      const parts = (rest + decoder.decode(value, { stream: !done })).split("\n");
      rest = parts.pop() ?? "";
      for (const line of parts) yield line.endsWith("\r") ? line.slice(0, -1) : line;
    }
    if (rest !== "") yield rest;
  } finally {
    // Cancelling a stream that has ended or broken rejects.
    if (!isOver) await reader.cancel().catch(() => undefined);
  }
}

export interface ServerSentEvent {
  readonly id: string;
  /** `message` where the stream names none. */
  readonly type: string;
  readonly data: string;
}

/** What the end of the stream cuts off is no event. */
export async function* eventsOf(
  stream: ReadableStream<Uint8Array> | null,
): AsyncGenerator<ServerSentEvent, void, undefined> {
  let id = "";
  let type = "";
  let data: string[] = [];
  for await (const line of linesOf(stream)) {
    if (line === "") {
      if (data.length > 0) yield { id, type: type || "message", data: data.join("\n") };
      type = "";
      data = [];
      continue;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") data.push(value);
    else if (field === "event") type = value;
    else if (field === "id") id = value;
  }
}
