// Chat through the gateway to the real engine: cancelled when the client leaves, loaded on demand, room made when full.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  cacheTalker,
  chatWith,
  loadedIds,
  loadsBegun,
  makeFolders,
  makeTalkerFolders,
  startTestGateway,
  streamChat,
} from "../support/gateway.ts";
import { answersOf } from "../support/models.ts";

for (const stream of [true, false]) {
  test(`a client that leaves ends the generation (${stream ? "stream" : "no stream"})`, async (t) => {
    const folders = await makeTalkerFolders(t);
    const gateway = await startTestGateway(t, { folders });
    await gateway.converged();
    const leaving = new AbortController();
    const request = fetch(`${gateway.url}/beta/v1/chat/completions`, {
      ...chatWith("acme/talker:Q8_0", "forever", { stream }),
      signal: leaving.signal,
    });
    await gateway.until("in flight", (status) => status.inFlight["acme/talker:Q8_0"] === 1);
    // The slow model would go on for minutes: that the next answer comes at all shows that it stopped.
    leaving.abort();
    await assert.rejects(
      request.then((response) => response.text()),
      { name: "AbortError" },
    );
    await gateway.until("released", (status) => Object.keys(status.inFlight).length === 0, 5_000);
    const started = Date.now();
    assert.equal(await gateway.ask("acme/talker:Q8_0"), answersOf("talker").hello);
    assert.ok(Date.now() - started < 5_000);
  });
}

test("beyond the limit the least recently used idle model makes room, and one that is in use never does", async (t) => {
  const folders = await makeTalkerFolders(t);
  const [first, second] = [await cacheTalker(folders, "acme/first"), await cacheTalker(folders, "acme/second")];
  const gateway = await startTestGateway(t, { folders, flags: ["--models-max", "2"] });
  await gateway.converged();
  await gateway.ask(first);
  let others: Promise<string[]> | null = null;
  const stream = await streamChat(gateway.url, "acme/talker:Q8_0", "long", () => {
    others ??= Promise.all([gateway.ask(second), gateway.ask(first), gateway.ask(second)]);
  });
  assert.deepEqual(stream, { text: answersOf("talker").long, done: true, error: null });
  assert.deepEqual(await others, [
    answersOf("acme/second").hello,
    answersOf("acme/first").hello,
    answersOf("acme/second").hello,
  ]);
  const loaded = await loadedIds(gateway);
  assert.equal(loaded.length, 2);
  assert.ok(loaded.includes("acme/talker:Q8_0"));
});

test("many first requests for one model load it once", async (t) => {
  const folders = await makeFolders(t);
  const alpha = await cacheTalker(folders, "acme/alpha");
  const gateway = await startTestGateway(t, { folders, yaml: "version: 1\n" });
  await gateway.converged();
  const answers = await Promise.all(Array.from({ length: 20 }, () => gateway.ask(alpha)));
  assert.deepEqual(new Set(answers), new Set([answersOf("acme/alpha").hello]));
  const { length } = loadsBegun(gateway);
  assert.ok(length <= 1, `${length} loads`);
});

test("what the engine refuses comes in the family's shape", async (t) => {
  const folders = await makeFolders(t);
  const alpha = await cacheTalker(folders, "acme/alpha");
  const gateway = await startTestGateway(t, {
    folders,
    yaml: `version: 1\nmodels: [{ id: "${alpha}", ctxSize: 256 }]\n`,
  });
  await gateway.converged();
  const long = "many words ".repeat(400);
  const compat = await gateway.json("/beta/v1/chat/completions", chatWith(alpha, long, { stream: true }));
  const error = compat.body["error"] as Record<string, unknown>;
  assert.deepEqual(
    [compat.status, error["code"], error["type"], error["param"], error["n_ctx"]],
    [400, "context_length_exceeded", "exceed_context_size_error", null, 256],
  );
  const native = await gateway.json("/alpha/api/chat", chatWith(alpha, long));
  assert.equal(native.status, 400);
  assert.match(String(native.body["error"]), /exceeds the available context size/);
});

test("the model's own keep_alive: 0 and empty messages load and unload as in Ollama's API", async (t) => {
  const folders = await makeFolders(t);
  const alpha = await cacheTalker(folders, "acme/alpha");
  const gateway = await startTestGateway(t, { folders, yaml: "version: 1\n" });
  await gateway.converged();
  const load = await gateway.json("/alpha/api/chat", {
    method: "POST",
    body: JSON.stringify({ model: alpha, messages: [] }),
  });
  assert.deepEqual([load.body["done"], load.body["done_reason"]], [true, "load"]);
  assert.deepEqual(await loadedIds(gateway), [alpha]);
  const ps = await gateway.json("/alpha/api/ps");
  assert.deepEqual(
    (ps.body["models"] as { name: string }[]).map((model) => model.name),
    [alpha],
  );
  const unload = await gateway.json("/alpha/api/chat", {
    method: "POST",
    body: JSON.stringify({ model: alpha, messages: [], keep_alive: 0 }),
  });
  assert.deepEqual([unload.body["done"], unload.body["done_reason"]], [true, "unload"]);
  assert.deepEqual(await loadedIds(gateway), []);
});
