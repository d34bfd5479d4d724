// A stream that outlasts the drain for somebody's change is cut: its client hears that the gateway did it, and not that the
// engine is at fault. (Of an answer that is not streamed nothing has been sent: it is asked for anew.)
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { makeTalkerFolders, talker } from "../support/folders.ts";
import { eventsOf, startTestGateway, streamChat, type TestGateway } from "../support/gateway.ts";
import { chatWith, postWith } from "../support/requests.ts";

const why = /^acme\/talker:Q8_0 was reloaded or unloaded for a change: .* than the 0\.5 s of --drain-timeout$/;

async function start(t: TestContext): Promise<TestGateway> {
  const folders = await makeTalkerFolders(t);
  const gateway = await startTestGateway(t, { folders, flags: ["--drain-timeout", "0.5"] });
  await gateway.converged();
  return gateway;
}

test("a stream is told what cut it, in each family", async (t) => {
  const gateway = await start(t);
  let size = 512;
  /** Another client's change; the answer to it. */
  const change = async (): Promise<void> => {
    size += 256;
    const { status } = await gateway.json("/api/set-ctx-size", postWith({ model: talker, ctx_size: size }));
    assert.equal(status, 200);
  };

  await t.test("compatible, streamed", async () => {
    let changing: Promise<void> | null = null;
    const stream = await streamChat(gateway.url, talker, "forever", () => {
      changing ??= change();
    });
    await (changing as Promise<void> | null);
    assert.equal(stream.done, false);
    assert.match(stream.error ?? "", why);
  });
  await t.test("native, streamed", async () => {
    const response = await fetch(`${gateway.url}/api/chat`, chatWith(talker, "forever"));
    let text = "";
    let changing: Promise<void> | null = null;
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) {
      text += decoder.decode(chunk as Uint8Array, { stream: true });
      changing ??= change();
    }
    await changing;
    const last = JSON.parse(text.trimEnd().split("\n").at(-1) ?? "") as { error?: string };
    assert.match(last.error ?? text, why);
  });
  await t.test("and everybody else by an event", () => {
    const events = eventsOf(gateway.gateway, "drain").map(({ data }) => data);
    const one = { model: talker, reason: "DrainTimedOut", cut: 1, drainMs: 500 };
    assert.deepEqual(events, [one, one]);
  });
});
