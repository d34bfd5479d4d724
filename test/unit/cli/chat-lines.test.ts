// What a typed line of a chat means.
import assert from "node:assert/strict";
import { test } from "node:test";
import { chatLine, chatText } from "../../../src/cli/chat-lines.ts";

for (const [text, expected] of [
  ["  hello\nthere ", { kind: "say", text: "hello\nthere" }],
  ["", { kind: "nothing" }],
  ["/ctx", { kind: "context", size: null }],
  ["/ctx  16384", { kind: "context", size: 16384 }],
  ["/clear", { kind: "clear" }],
  ["/bye", { kind: "bye" }],
  ["/save my chat.md", { kind: "save", file: "my chat.md" }],
] as const)
  test(JSON.stringify(text), () => assert.deepEqual(chatLine(text), expected));

for (const text of ["/ctx -1", "/ctx 0", "/ctx 8k", "/save", "/", "/quit now"])
  test(`${text} is wrong, and what is right is told`, () => {
    const line = chatLine(text);
    assert.equal(line.kind, "wrong");
    assert.match(line.kind === "wrong" ? line.message : "", /\/(?:help|ctx|save)/);
  });

test("a chat as Markdown and as JSON", () => {
  const messages = [
    { role: "system", content: "Be short." },
    { role: "user", content: "Hi" },
    { role: "assistant", content: "Hello.\n" },
  ] as const;
  assert.equal(
    chatText("a.md", "m", messages),
    "# Chat with m\n\n## System\n\nBe short.\n\n## You\n\nHi\n\n## Model\n\nHello.\n",
  );
  assert.deepEqual(JSON.parse(chatText("a.json", "m", messages)), { model: "m", messages });
});
