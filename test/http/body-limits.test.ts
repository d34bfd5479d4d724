// How much of a body each route takes: what a stranger sends costs next to nothing, and a chat may still have images.
import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { test } from "node:test";
import type { FastifyInstance, RouteOptions } from "fastify";
import { cleanUp } from "../support/clean-up.ts";
import { startTestGateway } from "../support/gateway.ts";
import { codeOf, messageOf } from "../support/own-calls.ts";
import { postWith } from "../support/requests.ts";

const key = "mgw-test-key-of-a-sufficient-length-0123456789";
const [kiB, miB] = [1 << 10, 1 << 20] as const;

test("bodies: by what comes in them, and by who may send them", async (t) => {
  const apps: FastifyInstance[] = [];
  const routes: RouteOptions[] = [];
  const onCreated = (message: unknown): void => {
    const { fastify } = message as { readonly fastify: FastifyInstance };
    apps.push(fastify);
    // The limit is set by a hook that comes after this one, on the same object.
    fastify.addHook("onRoute", (route) => void routes.push(route));
  };
  subscribe("fastify.initialization", onCreated);
  cleanUp(t, () => unsubscribe("fastify.initialization", onCreated));
  const gateway = await startTestGateway(t, {
    yaml: "version: 1\nspeech: { synthesis: { voice: en_US-lessac-medium } }\n",
    environment: { GATEWAY_LICENSE_KEY: key },
  });
  const licensed = { "content-type": "application/json", "x-license-key": key };
  const post = (body: string | Buffer): RequestInit => ({ method: "POST", headers: licensed, body });

  await t.test("no route that needs no key takes more than a text to speak", async () => {
    const keyless = routes.filter(({ config }) => config?.licenseKey !== undefined);
    assert.ok(keyless.some(({ url }) => url === "/beta/v1/audio/speech"));
    for (const { url, bodyLimit } of keyless) assert.ok(bodyLimit !== undefined && bodyLimit <= 256 * kiB, url);
    const path = "/beta/v1/audio/speech";
    const long = await gateway.json(path, postWith({ input: "é".repeat(100_000), voice: "v" }));
    // Read, and no voice of that name to be found without the hub.
    assert.deepEqual([long.status, codeOf(long)], [502, "hub_unreachable"]);
    const tooLong = await gateway.json(path, { ...postWith({}), body: "[".repeat(256 * kiB + 1) });
    assert.deepEqual([tooLong.status, codeOf(tooLong)], [413, "body_too_large"]);
    assert.match(messageOf(tooLong), /262144 bytes/);
    const hostile = await gateway.json(path, { ...postWith({}), body: "[".repeat(256 * kiB) });
    assert.match(messageOf(hostile), /nested too deeply/);
  });

  await t.test("a few fields need no more than 256 KiB", async () => {
    for (const path of ["/alpha/api/show", "/api/copy", "/api/set-ctx-size", "/models/load"]) {
      const answer = await gateway.json(path, post(JSON.stringify({ model: "a", padding: "x".repeat(256 * kiB) })));
      assert.equal(answer.status, 413, path);
    }
  });

  await t.test(
    "a document: 256 KiB, 500 models, 5,000 values; what is wrong with it is told twenty times at most",
    async () => {
      const path = "/api/desired?dryRun=true";
      const put = (document: object, method = "PUT"): ReturnType<typeof gateway.json> =>
        gateway.json(path, { ...post(JSON.stringify(document)), method });
      const models = (count: number): object[] =>
        Array.from({ length: count }, (_, n) => ({ id: `acme/a-model-${n}-GGUF:Q4_K_M`, ctxSize: 4096 }));
      const keys = (count: number): object => Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, n]));
      const taken = await put({ version: 1, models: models(500) });
      assert.equal(taken.status, 200, JSON.stringify(taken.body).slice(0, 300));
      for (const [what, answer, message] of [
        ["bytes", await put({ padding: "x".repeat(256 * kiB) }), /262144 bytes/],
        ["models", await put({ version: 1, models: models(501) }), /^models: 501 models exceed the limit of 500$/],
        ["models of a patch", await put({ models: models(501) }, "PATCH"), /501 models/],
        ["values", await put({ version: 1, ...keys(5_000) }), /^the document exceeds the limit of 5000 values$/],
        ["values of a patch", await put(keys(15_000), "PATCH"), /5000 values/],
      ] as const) {
        assert.deepEqual([answer.status, codeOf(answer)], [413, "body_too_large"], what);
        assert.match(messageOf(answer), message);
      }
      const wrong = await put({ version: 1, ...keys(4_000) });
      assert.deepEqual([wrong.status, codeOf(wrong)], [400, "invalid_document"]);
      assert.match(
        messageOf(wrong),
        /^k0: unknown key \(known: version, [^;]*\); (?:k\d+: unknown key \([^;]*\); ){19}and 3980 more$/,
      );
      const long = await put({ version: 1, ["k".repeat(100_000)]: 1, models: ["x".repeat(100_000)] });
      assert.equal(long.status, 400);
      assert.ok(messageOf(long).length < 1_000);
    },
  );

  await t.test("chats and texts to embed take what --body-limit says", () => {
    const chats = routes.filter(({ bodyLimit }) => bodyLimit === 64 * miB).map(({ url }) => url);
    for (const url of ["/alpha/api/chat", "/api/generate", "/api/embed", "/v1/chat/completions", "/v1/messages"])
      assert.ok(chats.includes(url), url);
    for (const url of chats) assert.doesNotMatch(url, /show|pull|copy|delete|load|desired|audio/);
  });

  await t.test("a chat's large body that is hostile is refused before it is parsed", async () => {
    const body = Buffer.concat([Buffer.from('{"model":"a","x":['), Buffer.alloc(6 * miB, "[],"), Buffer.from("[]]}")]);
    const answer = await gateway.json("/alpha/api/chat", post(body));
    assert.equal(answer.status, 400);
    assert.match(String(answer.body["error"]), /too many values/);
    const image = await gateway.json(
      "/alpha/api/chat",
      post(
        JSON.stringify({
          model: "a",
          messages: [{ role: "user", content: "", images: [`iVBORw0KGgo${"QUJD".repeat(miB)}`] }],
        }),
      ),
    );
    assert.equal(image.status, 404, JSON.stringify(image.body).slice(0, 300));
  });

  await t.test("receiving has an end, answering has none", () => {
    const [server] = apps.map((app) => app.server);
    assert.ok(server && server.requestTimeout > 0 && server.headersTimeout > 0);
    // Of silence both ways: a model that computes may be silent, a client that does not read what there is may not.
    assert.equal(server.timeout, 600_000);
  });

  await t.test("thousands of unknown parameters make no long answer", async () => {
    const query = Array.from({ length: 2_000 }, (_, n) => `p${n}`).join("&");
    const answer = await gateway.json(`/api/tts/voices/search?${query}`);
    assert.equal(answer.status, 400);
    assert.ok(messageOf(answer).length < 2_000, messageOf(answer));
    assert.match(messageOf(answer), /and 19\d\d more$/);
  });
});
