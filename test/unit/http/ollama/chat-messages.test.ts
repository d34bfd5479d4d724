// The messages of Ollama's chat become those of a chat completion: images, tool calls and their results.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { NativeMessage } from "../../../../schemas/ollama.ts";
import { messagesOf } from "../../../../src/http/ollama/wire/chat-messages.ts";

const png = "iVBORw0KGgoAAAANSUhEUg==";
const webp = Buffer.from("RIFF\x10\x20\x30\x40WEBPVP8 ", "latin1").toString("base64");

test("images become data URLs before the text", () => {
  for (const [image, type] of [
    [png, "png"],
    [Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 16]).toString("base64"), "jpeg"],
    [Buffer.from("GIF89a....").toString("base64"), "gif"],
    [Buffer.from("GIF87a....").toString("base64"), "gif"],
    [webp, "webp"],
  ] as const) {
    const url = `data:image/${type};base64,${image}`;
    assert.deepEqual(messagesOf([{ role: "user", content: "what?", images: [image] }]), [
      {
        role: "user",
        content: [
          { type: "image_url", image_url: { url } },
          { type: "text", text: "what?" },
        ],
      },
    ]);
  }
  const url = `data:image/png;base64,${png}`;
  assert.deepEqual(messagesOf([{ role: "user", images: [url] }]), [
    { role: "user", content: [{ type: "image_url", image_url: { url } }] },
  ]);
});

test("tool calls get ids by their place, and results find them", () => {
  const weather = (city: string, id?: string) => ({
    ...(id && { id }),
    function: { name: "weather", arguments: { city } },
  });
  const answer = messagesOf([
    { role: "system", content: "s" },
    { role: "user", content: "u" },
    { role: "assistant", thinking: "hm", tool_calls: [weather("A"), weather("B"), { function: { name: "time" } }] },
    { role: "tool", tool_name: "time", content: "noon" },
    { role: "tool", tool_name: "weather", content: "rain" },
    { role: "tool", content: "sun" },
    { role: "assistant", content: "more", tool_calls: [weather("C", "call_3"), weather("D")] },
    { role: "tool", tool_call_id: "call_3", tool_name: "weather", content: "fog" },
    { role: "tool", tool_name: "weather", content: "hail" },
    { role: "tool", tool_name: "unknown", content: "?" },
  ]);
  const call = (id: string, name: string, text: string) => ({
    id,
    type: "function",
    function: { name, arguments: text },
  });
  assert.deepEqual(answer, [
    { role: "system", content: "s" },
    { role: "user", content: "u" },
    {
      role: "assistant",
      content: "",
      reasoning_content: "hm",
      tool_calls: [
        call("call_0", "weather", '{"city":"A"}'),
        call("call_1", "weather", '{"city":"B"}'),
        call("call_2", "time", "{}"),
      ],
    },
    { role: "tool", content: "noon", tool_call_id: "call_2", name: "time" },
    { role: "tool", content: "rain", tool_call_id: "call_0", name: "weather" },
    { role: "tool", content: "sun", tool_call_id: "call_1" },
    {
      role: "assistant",
      content: "more",
      tool_calls: [call("call_3", "weather", '{"city":"C"}'), call("call_4", "weather", '{"city":"D"}')],
    },
    { role: "tool", content: "fog", tool_call_id: "call_3", name: "weather" },
    { role: "tool", content: "hail", tool_call_id: "call_4", name: "weather" },
    { role: "tool", content: "?", name: "unknown" },
  ]);
});

test("a longer conversation keeps the ids of its beginning", () => {
  const turn: fc.Arbitrary<NativeMessage> = fc.record({
    role: fc.constant("assistant" as const),
    tool_calls: fc.array(fc.record({ function: fc.record({ name: fc.constantFrom("a", "b") }) }), { maxLength: 3 }),
  });
  fc.assert(
    fc.property(fc.array(turn, { minLength: 1, maxLength: 5 }), turn, (turns, next) => {
      const before = messagesOf(turns);
      const after = messagesOf([...turns, next]);
      assert.deepEqual(after.slice(0, before.length), before);
      const ids = after.flatMap((message) => message.tool_calls ?? []);
      assert.equal(new Set(ids.map((call) => call.id)).size, ids.length);
    }),
  );
});
