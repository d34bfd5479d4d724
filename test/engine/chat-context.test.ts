// A context size that a chat carries: in the document, in router.preset.ini and in force before the answer, or left alone.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { cacheTalker, makeFolders, makeTalkerFolders, talker } from "../support/folders.ts";
import { eventsOf, loadsBegun, startTestGateway, streamChat, type TestGateway } from "../support/gateway.ts";
import { answersOf } from "../support/models.ts";
import { chatWith, patchWith } from "../support/requests.ts";

const alpha = "acme/alpha:Q8_0";
const hello = answersOf("acme/alpha").hello;

async function start(t: TestContext, flags: readonly string[] = [], model = ""): Promise<TestGateway> {
  const folders = await makeFolders(t);
  await cacheTalker(folders, "acme/alpha");
  const gateway = await startTestGateway(t, {
    folders,
    yaml: `version: 1\nmodels: [{ id: "${alpha}", preset: { threads: 1${model} } }]\n`,
    flags,
  });
  await gateway.converged();
  return gateway;
}

/** Chats with these further members; answers with the status, the header's context size and the text or error code. */
async function ask(gateway: TestGateway, rest: object, path = "/beta/v1/chat/completions"): Promise<unknown[]> {
  const { status, headers, body } = await gateway.json(path, chatWith(alpha, "hi", rest));
  const { choices, error } = body as {
    choices?: { message: { content: string } }[];
    error?: { code: string };
  };
  return [status, headers.get("x-context-size"), choices?.[0]?.message.content ?? error?.code];
}

/** The size in the preset file, on the list, and by the word of the model's own process. */
async function sizes(gateway: TestGateway): Promise<unknown[]> {
  const preset = await readFile(join(gateway.stateDir, "router.preset.ini"), "utf8");
  const { body } = await gateway.json(`/v1/models/${alpha}`);
  const { body: props } = await gateway.json(`/props?model=${alpha}`);
  const settings = props["default_generation_settings"] as { n_ctx: number } | undefined;
  return [Number(/^ctx-size = (\d+)$/m.exec(preset)?.[1] ?? 0), body["context_length"], settings?.n_ctx];
}

/** How often the preset file was written. */
function writes(gateway: TestGateway): number {
  return eventsOf(gateway.gateway, "action.finished").filter(
    (event) => (event.data as { kind: string }).kind === "preset.write",
  ).length;
}

test("a chat right after an edit is answered with the new size, by the first process that is loaded", async (t) => {
  const gateway = await start(t);
  for (const size of [1024, 2048, 3072]) {
    const edit = await gateway.json("/api/desired", patchWith({ models: { [alpha]: { ctxSize: size } } }));
    assert.equal(edit.status, 200);
    assert.deepEqual(await ask(gateway, {}), [200, String(size), hello]);
    await gateway.converged();
    assert.equal(loadsBegun(gateway).length, size / 1024);
    await gateway.json("/v1/models/unload", { method: "POST", body: JSON.stringify({ model: alpha }) });
  }
});

test("an edit that waits for further ones, as it unloads another model, is waited for, too", async (t) => {
  const folders = await makeFolders(t);
  const ids = [alpha, await cacheTalker(folders, "acme/beta")] as const;
  await cacheTalker(folders, "acme/alpha");
  const yaml = `version: 1\nmodels: [${ids.map((id) => `{ id: "${id}", preset: { threads: 1 } }`).join()}]\n`;
  const gateway = await startTestGateway(t, { folders, yaml });
  await gateway.converged();
  await gateway.ask(alpha);
  await gateway.json(
    "/api/desired",
    patchWith({ models: Object.fromEntries(ids.map((id) => [id, { ctxSize: 1024 }])) }),
  );
  const { status, headers } = await gateway.json("/v1/chat/completions", chatWith(ids[1]));
  assert.deepEqual([status, headers.get("x-context-size")], [200, "1024"]);
  await gateway.converged();
  assert.deepEqual(loadsBegun(gateway), ids, "each loaded once");
});

test("interface 4, Context size: a chat's own size is in force when it is answered, and one change is made of it", async (t) => {
  const gateway = await start(t);
  assert.deepEqual(await ask(gateway, {}), [200, "8192", hello]);
  const before = writes(gateway);
  assert.deepEqual(await ask(gateway, { num_ctx: 2048 }), [200, "2048", hello]);
  assert.deepEqual(await sizes(gateway), [2048, 2048, 2048]);
  assert.equal(writes(gateway), before + 1);
  const { generation } = gateway.gateway.status();

  await t.test("the same size again, none, and a smaller form of it change nothing", async () => {
    for (const rest of [{ ctx_size: 2048 }, {}, { options: { num_ctx: 2048 } }, { num_ctx: null }])
      assert.deepEqual(await ask(gateway, rest), [200, "2048", hello]);
    assert.equal(gateway.gateway.status().generation, generation);
  });
  await t.test("other routes of the family carry it too, and the smaller one is put in force as well", async () => {
    const { status, headers } = await gateway.json(
      "/v1/messages",
      chatWith(alpha, "hi", { num_ctx: 1024, max_tokens: 9 }),
    );
    assert.deepEqual([status, headers.get("x-context-size")], [200, "1024"]);
    assert.deepEqual(await sizes(gateway), [1024, 1024, 1024]);
  });
  await t.test("never above the trained context", async () => {
    assert.deepEqual(await ask(gateway, { num_ctx: 1_000_000 }), [200, "8192", hello]);
    assert.deepEqual(await sizes(gateway), [8192, 8192, 8192]);
    const after = gateway.gateway.status().generation;
    assert.deepEqual(await ask(gateway, { num_ctx: 9_000 }), [200, "8192", hello]);
    assert.equal(gateway.gateway.status().generation, after);
  });
  await t.test("a size that the engine rounds up is asked for once", async () => {
    await ask(gateway, { num_ctx: 1000 });
    const after = gateway.gateway.status().generation;
    assert.deepEqual(await ask(gateway, { num_ctx: 1000 }), [200, "1000", hello]);
    assert.equal(gateway.gateway.status().generation, after);
  });
  await t.test("who set it is told", async () => {
    const { body } = await gateway.json("/api/desired");
    assert.match(JSON.stringify(body), /http:chat/);
  });
});

test("where parallel slots share the context the same request twice makes one change", async (t) => {
  const gateway = await start(t, [], ", parallel: 2");
  assert.deepEqual(await ask(gateway, { num_ctx: 4096 }), [200, "2048", hello]);
  const { generation } = gateway.gateway.status();
  assert.deepEqual(await ask(gateway, { num_ctx: 4096 }), [200, "2048", hello]);
  assert.deepEqual(await sizes(gateway), [4096, 2048, 2048]);
  assert.equal(gateway.gateway.status().generation, generation);
});

test("many at once with one size make one change, and each is answered", async (t) => {
  const gateway = await start(t);
  await ask(gateway, {});
  const before = gateway.gateway.status().generation;
  const answers = await Promise.all(Array.from({ length: 8 }, () => ask(gateway, { num_ctx: 1024 })));
  for (const answer of answers) assert.deepEqual(answer, [200, "1024", hello]);
  assert.equal(gateway.gateway.status().generation, before + 1);
});

test("a stream under way ends whole before another client's size is in force", async (t) => {
  const folders = await makeTalkerFolders(t);
  const gateway = await startTestGateway(t, { folders });
  await gateway.converged();
  const order: string[] = [];
  let other: Promise<void> | null = null;
  const stream = await streamChat(gateway.url, talker, "long", () => {
    other ??= gateway
      .json("/v1/chat/completions", chatWith(talker, "hi", { num_ctx: 768 }))
      .then(({ status, headers, body }) => {
        const [choice] = body["choices"] as { message: { content: string } }[];
        assert.deepEqual(
          [status, headers.get("x-context-size"), choice?.message.content],
          [200, "768", answersOf("talker").hello],
        );
        order.push("other");
      });
  });
  order.push("stream");
  await (other as Promise<void> | null);
  assert.deepEqual(stream, { text: answersOf("talker").long, done: true, error: null });
  assert.deepEqual(order, ["stream", "other"]);
});

test("--chat-context grow takes only larger sizes", async (t) => {
  const gateway = await start(t, ["--chat-context", "grow"]);
  await gateway.json("/api/desired?wait=true", patchWith({ models: { [alpha]: { ctxSize: 2048 } } }));
  assert.deepEqual(await ask(gateway, { num_ctx: 1024 }), [200, "2048", hello]);
  assert.deepEqual(await ask(gateway, { num_ctx: 4096 }), [200, "4096", hello]);
});

test("--chat-context ignore takes none, and a suspended document refuses none", async (t) => {
  const gateway = await start(t, ["--chat-context", "ignore"]);
  await gateway.json("/api/desired", patchWith({ suspend: true }));
  assert.deepEqual(await ask(gateway, { num_ctx: 1024 }), [200, "8192", hello]);
});

test("a change that cannot be made is told before the answer, in the family's shape", async (t) => {
  const gateway = await start(t);
  await gateway.json("/api/desired?wait=true", patchWith({ suspend: true }));
  for (const stream of [false, true]) {
    const { status, headers, body } = await gateway.json(
      "/v1/chat/completions",
      chatWith(alpha, "hi", { num_ctx: 1024, stream }),
    );
    assert.deepEqual([status, (body["error"] as { code: string }).code], [409, "suspended"]);
    assert.equal(headers.get("x-should-retry"), "false");
  }
  assert.deepEqual(await ask(gateway, {}), [200, "8192", hello]);
});
