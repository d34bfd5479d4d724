// Requests that wait: how many may, what for, and that one whose client leaves is gone without a trace.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { runCommand } from "../support/command.ts";
import { cacheTalker, makeTalkerFolders, talker } from "../support/folders.ts";
import { startTestGateway, type TestGateway, untilLoaded } from "../support/gateway.ts";
import { answersOf } from "../support/models.ts";
import { codeOf } from "../support/own-calls.ts";
import { chatWith } from "../support/requests.ts";

async function start(t: TestContext, flags: readonly string[]): Promise<{ gateway: TestGateway; other: string }> {
  const folders = await makeTalkerFolders(t);
  const other = await cacheTalker(folders, "acme/other");
  const gateway = await startTestGateway(t, { folders, flags });
  await gateway.converged();
  return { gateway, other };
}

/** An endless answer of the slow model under way; call the result to leave it. */
async function occupy({ gateway }: { readonly gateway: TestGateway }, count = 1): Promise<() => Promise<void>> {
  const leaving = new AbortController();
  const body = chatWith(talker, "forever", { stream: true });
  const streams = Array.from({ length: count }, () =>
    fetch(`${gateway.url}/v1/chat/completions`, { ...body, signal: leaving.signal })
      .then((response) => response.text())
      .catch(() => ""),
  );
  await gateway.until("in flight", ({ inFlight }) => inFlight[talker] === count);
  return async () => {
    leaving.abort();
    await Promise.all(streams);
    await gateway.until("left", ({ inFlight }) => inFlight[talker] === undefined);
  };
}

test("a full line: 503 busy and when to come again, in each shape; other models have a line of their own", async (t) => {
  const setting = await start(t, ["--queue-limit", "2"]);
  const { gateway, other } = setting;
  const leave = await occupy(setting, 2);
  const why = /^2 requests for acme\/talker:Q8_0 are queued or running \(--queue-limit\)$/;
  const compat = await gateway.json("/v1/chat/completions", chatWith(talker, "hi", { stream: true }));
  assert.deepEqual([compat.status, codeOf(compat), compat.headers.get("retry-after")], [503, "busy", "5"]);
  const { error } = compat.body as { error: { type: string; message: string } };
  assert.equal(error.type, "server_error");
  assert.match(error.message, why);
  const messages = await gateway.json("/v1/messages", chatWith(talker, "hi", { max_tokens: 5 }));
  assert.equal(messages.status, 503);
  assert.equal((messages.body["error"] as { type: string }).type, "overloaded_error");
  const native = await gateway.json("/api/chat", chatWith(talker));
  assert.deepEqual([native.status, native.headers.get("retry-after")], [503, "5"]);
  assert.match(String(native.body["error"]), why);
  const embed = await gateway.json("/api/embed", {
    ...chatWith(talker),
    body: JSON.stringify({ model: talker, input: "x" }),
  });
  assert.equal(embed.status, 503);
  assert.equal(await gateway.ask(other), answersOf("acme/other").hello);
  await leave();
  assert.equal(await gateway.ask(talker), answersOf("talker").hello);
});

test("a client that leaves its line is out at once, and nothing is loaded for it", async (t) => {
  const setting = await start(t, ["--models-max", "1"]);
  const { gateway, other } = setting;
  const leave = await occupy(setting);
  const leaving = new AbortController();
  const asked = [1, 2, 3].map(() =>
    fetch(`${gateway.url}/v1/chat/completions`, { ...chatWith(other), signal: leaving.signal }).catch(() => null),
  );
  await gateway.until("in line", ({ waiting: [first] }) => first?.requests === 3 && first.for === "room");
  assert.match(
    await (await fetch(`${gateway.url}/metrics`)).text(),
    /^model_gateway_requests_waiting\{model="acme\/other:Q8_0",for="room"\} 3$/m,
  );
  const { stdout } = await runCommand(t, gateway, ["status", "--port", new URL(gateway.url).port]);
  assert.match(stdout, /^MODEL +SIZE +CONTEXT +STATE +SINCE +IN FLIGHT +WAITING +MEMORY$/m);
  assert.match(stdout, /^acme\/other:Q8_0 +[\d.]+ kB +\d+ +unloaded +\d+s +0 +3 for room, \d+s +(–|needs \d+ MiB)$/m);
  assert.match(stdout, /^acme\/talker:Q8_0 +[\d.]+ MB +\d+ +loaded +\d+s +1 +0 +\d+ MiB$/m);
  leaving.abort();
  await Promise.all(asked);
  await gateway.until("out of it", (status) => status.waiting.length === 0);
  await leave();
  // Its load would have had its turn by the time that another request is through.
  assert.equal(await gateway.ask(talker), answersOf("talker").hello);
  await untilLoaded(gateway, talker);
});
