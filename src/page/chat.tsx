// A small chat to try a model.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { ChatMessage } from "../client/index.ts";
import { elapsedText } from "../core/quantities.ts";
import { ErrorNote, Section, submitting, useShell } from "./parts.tsx";

export function Chat({ argument }: { readonly argument: string }): JSX.Element {
  const { client, live } = useShell();
  const ids = live.status?.models.filter(({ runtime }) => runtime).map(({ id }) => id) ?? [];
  const [chosen, setModel] = useState(argument);
  const model = ids.includes(chosen) ? chosen : (ids[0] ?? "");
  const [messages, setMessages] = useState<readonly ChatMessage[]>([]);
  const [text, setText] = useState("");
  const [timing, setTiming] = useState("");
  const [error, setError] = useState<unknown>(null);
  const [running, setRunning] = useState<AbortController | null>(null);
  const end = useRef<HTMLLIElement>(null);
  useEffect(() => end.current?.scrollIntoView({ block: "nearest" }), [messages]);
  useEffect(() => () => running?.abort(), [running]);

  async function send(): Promise<void> {
    const asked: readonly ChatMessage[] = [...messages, { role: "user", content: text.trim() }];
    const stop = new AbortController();
    setMessages(asked);
    setText("");
    setError(null);
    setRunning(stop);
    let answer = "";
    let firstMs: number | null = null;
    const begin = performance.now();
    try {
      for await (const { content } of client.chat({ model, messages: asked }, { signal: stop.signal })) {
        firstMs ??= performance.now() - begin;
        answer += content;
        setMessages([...asked, { role: "assistant", content: answer }]);
      }
      const ms = Math.round(performance.now() - begin);
      setTiming(`First text after ${elapsedText(Math.round(firstMs ?? ms))}, ${elapsedText(ms)} in all.`);
    } catch (thrown) {
      if (!stop.signal.aborted) setError(thrown);
    }
    setRunning(null);
  }

  const submit = (): void => {
    if (text.trim() !== "" && running === null && model !== "") void send();
  };
  return (
    <Section
      title="Chat"
      aside={
        <button type="button" class="quiet" disabled={messages.length === 0} onClick={() => setMessages([])}>
          Clear
        </button>
      }
    >
      {ids.length === 0 && <p class="dim">There is no model to chat with yet.</p>}
      <label class="field">
        Model
        <select value={model} onChange={({ currentTarget }) => setModel(currentTarget.value)}>
          {ids.map((id) => (
            <option key={id}>{id}</option>
          ))}
        </select>
      </label>
      <ol class="plain chat" aria-label="Messages" aria-live="polite">
        {messages.map(({ role, content }, at) => (
          <li key={at} class={role}>
            <small>{role === "user" ? "You" : model}</small>
            <p>{content}</p>
          </li>
        ))}
        <li ref={end} aria-hidden="true" />
      </ol>
      <ErrorNote error={error} />
      <form onSubmit={submitting(submit)}>
        <label class="field">
          Message
          <textarea
            rows={3}
            value={text}
            onInput={({ currentTarget }) => setText(currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key !== "Enter" || event.shiftKey) return;
              event.preventDefault();
              submit();
            }}
          />
        </label>
        <p class="row">
          <button type="submit" disabled={running !== null || model === ""}>
            Send
          </button>
          <button type="button" class="quiet" disabled={running === null} onClick={() => running?.abort()}>
            Stop
          </button>
          <small>{timing}</small>
        </p>
      </form>
    </Section>
  );
}
