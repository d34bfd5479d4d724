// More models than places: who is loaded, who goes, and that nobody waits for ever.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  cacheTalker,
  chatWith,
  eventsOf,
  loadedIds,
  loadsBegun,
  makeFolders,
  makeTalkerFolders,
  patchWith,
  startTestGateway,
  streamChat,
  talker,
} from "../support/gateway.ts";
import { answersOf } from "../support/models.ts";
import { codeOf } from "../support/own-calls.ts";

test("two models that are always asked for take turns in one place: both are answered, and loads are few", async (t) => {
  const folders = await makeFolders(t);
  const ids = [await cacheTalker(folders, "acme/a"), await cacheTalker(folders, "acme/b")];
  const gateway = await startTestGateway(t, { folders, yaml: "version: 1\n", flags: ["--models-max", "1"] });
  await gateway.converged();
  const answered = new Map<string, number>();
  let isOver = false;
  const client = async (id: string): Promise<void> => {
    while (!isOver) {
      assert.equal(await gateway.ask(id), answersOf(id.slice(0, id.indexOf(":"))).hello);
      answered.set(id, (answered.get(id) ?? 0) + 1);
      isOver ||= loadsBegun(gateway).length >= 4;
    }
  };
  const startedAt = Date.now();
  await Promise.all([...ids, ...ids, ...ids].map(client));
  const took = Date.now() - startedAt;
  const order = loadsBegun(gateway);
  // In turn, and each turn at least a second long.
  for (const [index, id] of order.entries()) if (index > 0) assert.notEqual(id, order[index - 1], order.join(", "));
  assert.ok(took >= (order.length - 2) * 1_000, `${order.length} loads in ${took} ms`);
  for (const id of ids) assert.ok((answered.get(id) ?? 0) > 5, `${id}: ${answered.get(id)}`);
});

test("a steady crowd at one model does not keep a single request for another waiting for ever", async (t) => {
  const folders = await makeFolders(t);
  const [crowded, single] = [await cacheTalker(folders, "acme/crowded"), await cacheTalker(folders, "acme/single")];
  const gateway = await startTestGateway(t, { folders, yaml: "version: 1\n", flags: ["--models-max", "1"] });
  await gateway.converged();
  let isAnswered = false;
  const client = async (): Promise<void> => {
    while (!isAnswered) assert.equal(await gateway.ask(crowded), answersOf("acme/crowded").hello);
  };
  const crowd = Array.from({ length: 20 }, client);
  const { waiting } = await gateway.until(
    "all have come",
    (status) => status.inFlight[crowded] === 8 && status.waiting[0]?.requests === 12,
  );
  // Twice its slots are under way, the others wait.
  assert.deepEqual(
    waiting.map((entry) => [entry.model, entry.requests, entry.for]),
    [[crowded, 12, "turn"]],
  );
  assert.equal(await gateway.ask(single), answersOf("acme/single").hello);
  isAnswered = true;
  await Promise.all(crowd);
  const order = loadsBegun(gateway);
  assert.deepEqual(order, [crowded, single, crowded]);
});

test("a pinned model is evicted for none, the least recently used of the others is", async (t) => {
  const folders = await makeFolders(t);
  const [pinned, b, c] = await Promise.all(["acme/a", "acme/b", "acme/c"].map((repo) => cacheTalker(folders, repo)));
  assert.ok(pinned !== undefined && b !== undefined && c !== undefined);
  const gateway = await startTestGateway(t, {
    folders,
    yaml: `version: 1\nmodels: [{ id: "${pinned}", pinned: true }]\n`,
    flags: ["--models-max", "2", "--keep-alive", "1"],
  });
  await gateway.converged();
  for (const id of [pinned, b, c]) await gateway.ask(id);
  assert.deepEqual(await loadedIds(gateway), [pinned, c]);

  await t.test("nor unloaded for lack of use, or by a request's word", async () => {
    await gateway.json("/api/chat", chatWith(pinned, "hi", { stream: false, keep_alive: 0 }));
    const isUnloaded = `"model":"${c}"`;
    await gateway.until("the other has gone", () =>
      eventsOf(gateway.gateway, "model").some(
        ({ data }) => JSON.stringify(data).includes(isUnloaded) && JSON.stringify(data).includes('"unloaded"'),
      ),
    );
    assert.deepEqual(await loadedIds(gateway), [pinned]);
  });
  await t.test("with every place pinned the others are refused, in each family's shape, until one is not", async () => {
    const both = { models: { [pinned]: { pinned: true }, [b]: { pinned: true } } };
    assert.equal((await gateway.json("/api/desired?wait=true", patchWith(both))).status, 200);
    await gateway.ask(b);
    const compat = await gateway.json("/v1/chat/completions", chatWith(c));
    assert.deepEqual([compat.status, codeOf(compat), compat.headers.get("retry-after")], [503, "busy", "30"]);
    const native = await gateway.json("/api/chat", chatWith(c));
    assert.equal(native.status, 503);
    assert.match(String(native.body["error"]), /^no room for acme\/c:Q8_0: each of the 2 places .* pins$/);
    assert.deepEqual(await loadedIds(gateway), [pinned, b]);
    await gateway.json("/api/desired?wait=true", patchWith({ models: { [b]: { pinned: null } } }));
    await gateway.ask(c);
    assert.deepEqual(await loadedIds(gateway), [pinned, c]);
  });
  await t.test("somebody may eject it", async () => {
    const { status } = await gateway.json("/v1/models/unload", { ...chatWith(pinned), method: "POST" });
    assert.equal(status, 200);
    assert.ok(!(await loadedIds(gateway)).includes(pinned));
  });
});

test("where every place is in use a request waits, is told that all are busy, and the stream in use stays whole", async (t) => {
  const folders = await makeTalkerFolders(t);
  const other = await cacheTalker(folders, "acme/other");
  const gateway = await startTestGateway(t, {
    folders,
    flags: ["--models-max", "1", "--load-timeout", "2"],
  });
  await gateway.converged();
  await gateway.json("/v1/models/load", chatWith(talker));
  let refused: Promise<{ status: number; headers: Headers }> | null = null;
  let ended = false;
  const stream = streamChat(gateway.url, talker, "long", () => {
    refused ??= gateway.json("/v1/chat/completions", chatWith(other));
  }).then((whole) => {
    ended = true;
    return whole;
  });
  const { waiting } = await gateway.until(
    "waiting",
    ({ waiting: [first] }) => first?.model === other && first.for === "room",
  );
  assert.deepEqual(
    waiting.map((entry) => [entry.model, entry.requests, entry.for]),
    [[other, 1, "room"]],
  );
  const answer = await (refused as Promise<{ status: number; headers: Headers }> | null);
  assert.equal(ended, false);
  assert.deepEqual([answer?.status, answer?.headers.get("retry-after")], [503, "30"]);
  assert.deepEqual(await stream, { text: answersOf("talker").long, done: true, error: null });
});
