// Pulls that fail: with which code, and that nothing of them stays in the cache.
import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { describe, it } from "node:test";
import { GatewayError } from "../../../../src/core/errors.ts";
import { reserveBytes } from "../../../../src/plan/room.ts";
import { modelHead, withGgufHead } from "../../../support/cache-folder.ts";
import { modelBytes, talkingModel } from "../../../support/models.ts";
import { startPulling } from "../../../support/pulling.ts";

const bytes = (text: string, size = 300_000) => withGgufHead(Buffer.alloc(size, `${text} `));
const token = "hf_abcdefghijklmnopqrstuvwxyz0123456789";
const demo = { "demo-Q8_0.gguf": bytes("eight", 3_000_000) };
const id = "acme/demo-GGUF:Q8_0";
const model = modelBytes(talkingModel("demo"));
const halfModel = Buffer.from(model.subarray(0, model.length / 2));

describe("a pull that fails", () => {
  it("keeps nothing of wrong bytes", async (t) => {
    const { hub, refusal, world } = await startPulling(t);
    hub.addRepo("acme/demo-GGUF", { files: demo });
    hub.corrupt("demo-Q8_0.gguf");
    assert.equal((await refusal(id)).code, "checksum_mismatch");
    assert.deepEqual(await world(), []);
  });

  for (const [what, content] of [
    ["begins as no GGUF", Buffer.alloc(2_000_000, "<html> ")],
    ["has less than a head", Buffer.from("GGUF")],
    ["ends within its head", modelHead("demo").subarray(0, 60)],
    ["lacks a half of its tensors", halfModel],
    ["is of another byte order", Buffer.from(modelHead("demo").swap32())],
  ] as const) {
    it(`keeps nothing of a model that ${what}, not its good shards either, though it were tried again`, async (t) => {
      const { hub, refusal, world } = await startPulling(t);
      hub.addRepo("acme/demo-GGUF", {
        files: { "demo-Q8_0-00001-of-00002.gguf": bytes("one"), "demo-Q8_0-00002-of-00002.gguf": content },
      });
      const error = await refusal(id, { isStillWanted: () => true });
      assert.deepEqual(
        [error.code, error.reaction, error.message],
        ["not_a_model", "stall", "demo-Q8_0-00002-of-00002.gguf of acme/demo-GGUF is not a whole GGUF file"],
      );
      assert.deepEqual(await world(), []);
    });
  }

  it("asks for nothing of a file whose name no file system takes", async (t) => {
    const { hub, refusal, world } = await startPulling(t);
    const path = `${"é".repeat(130)}-Q8_0.gguf`;
    hub.addRepo("acme/demo-GGUF", { files: { [path]: bytes("long") } });
    const error = await refusal(id);
    assert.deepEqual([error.code, error.reaction], ["not_supported", "stall"]);
    assert.match(error.message, /exceeds 255 bytes/);
    assert.deepEqual([hub.sentBytes(path), await world()], [0, []]);
  });

  it("keeps nothing of a transfer that breaks off, and succeeds when tried again", async (t) => {
    const { hub, client, refusal, pull, world, shown } = await startPulling(t);
    hub.addRepo("acme/demo-GGUF", { files: demo });
    hub.dropAfter("demo-Q8_0.gguf", 10, 99);
    assert.equal((await refusal(id)).code, "hub_unreachable");
    assert.equal(client.reachability().status, "unreachable");
    assert.deepEqual(await world(), []);
    hub.dropAfter("demo-Q8_0.gguf", 0, 0);
    await pull(id);
    assert.equal(client.reachability().status, "reachable");
    assert.deepEqual(await shown("acme/demo-GGUF", "demo-Q8_0.gguf"), demo["demo-Q8_0.gguf"]);
  });

  it("gives up on a transfer that stands still", async (t) => {
    const { hub, refusal, world } = await startPulling(t, { stallMs: 500 });
    hub.addRepo("acme/demo-GGUF", { files: demo });
    const hold = hub.throttle("demo-Q8_0.gguf", 1_000_000);
    assert.equal((await refusal(id, { tuning: { tries: 1 } })).code, "hub_unreachable");
    hold.release();
    assert.deepEqual(await world(), []);
  });

  it("stops at once when cancelled, drops the connection, and keeps nothing", async (t) => {
    const { hub, refusal, world } = await startPulling(t);
    const files = {
      "demo-Q8_0-00001-of-00002.gguf": bytes("one"),
      "demo-Q8_0-00002-of-00002.gguf": bytes("two", 2_000_000),
    };
    hub.addRepo("acme/demo-GGUF", { files });
    const hold = hub.throttle("demo-Q8_0-00002-of-00002.gguf", 1_200_000);
    const abort = new AbortController();
    const outcome = refusal(id, { signal: abort.signal });
    await hold.reached;
    assert.equal((await world()).filter((line) => /\/[0-9a-f]{64}\.gw\.incomplete$/.test(line)).length, 2);
    abort.abort();
    assert.equal((await outcome).code, "cancelled");
    await hold.left;
    hold.release();
    assert.deepEqual(await world(), []);
    assert.equal((await refusal(id, { signal: abort.signal })).code, "cancelled");
  });

  it("keeps whole shards for the next try, where there will be one, when the gateway stops or a later shard fails", async (t) => {
    const { hub, refusal, pull, world } = await startPulling(t);
    const isStillWanted = () => true;
    const files = {
      "demo-Q8_0-00001-of-00002.gguf": bytes("one"),
      "demo-Q8_0-00002-of-00002.gguf": bytes("two", 2_000_000),
    };
    hub.addRepo("acme/demo-GGUF", { files });
    const hold = hub.throttle("demo-Q8_0-00002-of-00002.gguf", 0);
    const abort = new AbortController();
    const outcome = refusal(id, { signal: abort.signal, isStillWanted });
    await hold.reached;
    abort.abort(new GatewayError("shutting_down", "bye"));
    assert.equal((await outcome).code, "cancelled");
    hold.release();
    // The whole shard, and its sidecar.
    const kept = await world();
    assert.equal(kept.length, 2);
    hub.dropAfter("demo-Q8_0-00002-of-00002.gguf", 5, 99);
    assert.equal((await refusal(id, { isStillWanted })).code, "hub_unreachable");
    const still = await world();
    assert.ok(kept.every((line) => still.includes(line)));
    hub.dropAfter("demo-Q8_0-00002-of-00002.gguf", 0, 0);
    const pulled = await pull(id);
    assert.equal(pulled.downloadedBytes + pulled.resumedBytes, 2_300_000);
    hub.addRepo("acme/other-GGUF", { files });
    hub.dropAfter("demo-Q8_0-00002-of-00002.gguf", 5, 99);
    const before = await world();
    assert.equal((await refusal("acme/other-GGUF:Q8_0")).code, "hub_unreachable");
    assert.deepEqual(await world(), before);
  });

  it("says what a gated or private repository needs, and never the token", async (t) => {
    const wrong = "hf_wrongwrongwrongwrongwrongwrongwrong";
    const anonymous = await startPulling(t);
    const stranger = await startPulling(t, { token: wrong });
    for (const { hub, refusal, world } of [anonymous, stranger]) {
      hub.addRepo("acme/demo-GGUF", { files: demo, gated: true });
      hub.addRepo("acme/secret", { files: demo, private: true });
      const error = await refusal(id);
      assert.equal(error.code, "hub_denied");
      assert.match(error.message, /GatedRepo/);
      assert.match(error.message, hub === stranger.hub ? /a token was sent/ : /no token was sent/);
      assert.equal((await refusal("acme/secret:Q8_0")).code, "hub_not_found");
      assert.equal(error.message.includes(wrong), false);
      assert.deepEqual(await world(), []);
    }
    stranger.hub.requireToken(token);
    const bad = await stranger.refusal(id);
    assert.equal(bad.code, "hub_denied");
    assert.match(bad.message, /Invalid credentials/);
  });

  it("sends the token to the hub, and to no other origin", async (t) => {
    const { hub, pull } = await startPulling(t, { token, tokens: [token] });
    hub.addRepo("acme/demo-GGUF", { files: demo, gated: true });
    await pull(id);
    const seen = (origin: string) => [
      ...new Set(hub.requests.filter((request) => request.origin === origin).map((request) => request.authorized)),
    ];
    assert.deepEqual(seen("hub"), [true]);
    assert.deepEqual(seen("storage"), [false]);
  });

  it("tells apart what is not there", async (t) => {
    const { hub, refusal, world } = await startPulling(t, { token, tokens: [token] });
    hub.addRepo("acme/demo-GGUF", { files: { ...demo, "demo-Q6_K.gguf": bytes("six") } });
    hub.addRepo("acme/pair", { files: { "one-Q8_0.gguf": bytes("one"), "two-Q8_0.gguf": bytes("two") } });
    const missing = await refusal("acme/none:Q8_0");
    assert.equal(missing.code, "hub_not_found");
    assert.match(missing.message, /RepoNotFound/);
    const revision = await refusal(id, { revision: "v2" });
    assert.equal(revision.code, "hub_not_found");
    assert.match(revision.message, /acme\/demo-GGUF at v2.*RevisionNotFound/);
    const tag = await refusal("acme/demo-GGUF:Q4_0");
    assert.equal(tag.code, "quant_not_found");
    assert.match(tag.message, /Q6_K, Q8_0/);
    assert.equal((await refusal("acme/pair:Q8_0")).code, "quant_ambiguous");
    assert.deepEqual(await world(), []);
  });

  it("waits as long as the hub asks for", async (t) => {
    const { hub, refusal } = await startPulling(t);
    hub.addRepo("acme/demo-GGUF", { files: demo });
    hub.rateLimit({ seconds: 55 });
    const limited = await refusal(id);
    assert.equal(limited.code, "hub_rate_limited");
    assert.equal(limited.retryAfterMs, 55_000);
    hub.failNext({ status: 429, headers: { "Retry-After": "7" } });
    assert.equal((await refusal(id)).retryAfterMs, 7000);
    for (const status of [503, 403]) {
      hub.failNext({ status, times: 6, match: (request) => request.origin === "storage" });
      assert.equal((await refusal(id)).code, "hub_unreachable");
    }
  });

  it("refuses before the first byte when there is no room", async (t) => {
    const { hub, refusal, pull, world, cacheDir } = await startPulling(t);
    hub.addRepo("acme/demo-GGUF", { files: demo });
    const error = await refusal(id, { freeBytes: async () => reserveBytes + 1_000_000 });
    assert.deepEqual(await readdir(cacheDir), [], "no folder either");
    assert.equal(error.code, "disk_full");
    assert.match(error.message, /2 MiB are missing/);
    assert.deepEqual(await world(), []);
    assert.equal(
      hub.requests.some((request) => request.path.includes("/resolve/")),
      false,
    );
    await pull(id, { freeBytes: async () => reserveBytes + 3_000_000 });
    // What is there needs no room.
    await pull(id, { freeBytes: async () => 0 });
  });

  it("writes nowhere but into its folder, whatever the hub's names are", async (t) => {
    const { hub, refusal, world } = await startPulling(t);
    hub.addRepo("acme/demo-GGUF", { files: { "../../../escape-Q8_0.gguf": bytes("out") } });
    assert.equal((await refusal(id)).code, "not_supported");
    assert.deepEqual(await world(), []);
  });
});
