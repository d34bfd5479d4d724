// The head of a GGUF file on a hub: as many ranges as it takes, and an end to them.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { createHubClient } from "../../../src/hub/client.ts";
import { fetchHead } from "../../../src/hub/head.ts";
import { startLoopbackHub } from "../../support/loopback-hub.ts";
import { modelBytes, talkingModel } from "../../support/models.ts";
import { refusal } from "../../support/scratch.ts";
import { ggufBytes } from "../../support/scripted/gguf-writer.ts";

const mebibyte = 1024 ** 2;
const repo = "acme/heads-GGUF";
const signal = new AbortController().signal;

/** A head of about so many bytes. */
function longHead(bytes: number): Uint8Array {
  const tokens = Array.from({ length: bytes / 1024 }, () => "x".repeat(1016));
  return ggufBytes({
    metadata: [
      ["general.architecture", { type: "string", value: "llama" }],
      ["tokenizer.ggml.tokens", { type: "strings", value: tokens }],
    ],
    tensors: [{ name: "a.weight", shape: [mebibyte] }],
  });
}

async function world(t: TestContext, bytes: Uint8Array) {
  const hub = await startLoopbackHub(t);
  const commit = hub.addRepo(repo, { files: { "a.gguf": bytes } });
  const client = createHubClient({ endpoint: hub.endpoint, token: undefined });
  t.after(() => client.close());
  const [file] = await client.listTree(repo, commit);
  assert.ok(file);
  const ranges = () => hub.requests.filter(({ origin }) => origin === "storage").map(({ range }) => range);
  return { hub, ranges, fetch: () => fetchHead(client, { repo, commit, file }, signal) };
}

test("a head in the first range is one request, and the weights stay on the hub", async (t) => {
  const bytes = modelBytes({ ...talkingModel("a"), width: 1024, feedForward: 8192, layers: 2 });
  const { fetch, ranges } = await world(t, bytes);
  assert.deepEqual(await fetch(), Buffer.from(bytes.subarray(0, mebibyte)));
  assert.deepEqual(ranges(), [`bytes=0-${mebibyte - 1}`]);
});

test("a long head takes the ranges that it needs", async (t) => {
  const bytes = longHead(2.5 * mebibyte);
  const { fetch, ranges } = await world(t, bytes);
  assert.deepEqual(await fetch(), Buffer.from(bytes.subarray(0, 3 * mebibyte)));
  assert.equal(ranges().length, 3);
});

test("one that does not end is given up at 16 MiB", async (t) => {
  const { fetch, ranges } = await world(t, longHead(17 * mebibyte));
  assert.match((await refusal(fetch())).message, /exceeds 16 MiB/);
  assert.equal(ranges().length, 16);
});

test("no model, and a hub without ranges, are told", async (t) => {
  const { fetch } = await world(t, Buffer.from("no model"));
  assert.equal((await refusal(fetch())).code, "not_a_model");
  const other = await world(t, longHead(1.5 * mebibyte));
  other.hub.lieAboutRanges("a.gguf", "whole");
  assert.match((await refusal(other.fetch())).message, /no ranges/);
});
