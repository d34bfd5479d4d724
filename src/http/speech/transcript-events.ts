// A whole transcription as the events that OpenAI's clients read where they ask for a stream: the engine itself makes none. Pure.

/** `contentType` and `body`: as the engine answered. */
export function transcriptEvents(contentType: string, body: Uint8Array): string {
  const text = textOf(contentType, new TextDecoder().decode(body));
  return [
    { type: "transcript.text.delta", delta: text },
    { type: "transcript.text.done", text },
  ]
    .map((event) => `data: ${JSON.stringify(event)}\n\n`)
    .join("");
}

/** A response_format that is no JSON is the text itself. */
function textOf(contentType: string, body: string): string {
  if (!contentType.includes("json")) return body;
  try {
    const { text } = JSON.parse(body) as { readonly text?: unknown };
    return typeof text === "string" ? text : body;
  } catch {
    return body;
  }
}
