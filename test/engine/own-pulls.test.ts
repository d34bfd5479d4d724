// Pulls that a call asks for: what the document says meanwhile and afterwards, and what is left of one that fails or is left.
import assert from "node:assert/strict";
import { test } from "node:test";
import { cleanUp } from "../support/clean-up.ts";
import { cacheTalker, makeFolders } from "../support/folders.ts";
import { startTestGateway } from "../support/gateway.ts";
import { answersOf, modelBytes, talkingModel } from "../support/models.ts";
import { documentModels, leftovers, modelIds, pull, startWithHub, triesAtOnce } from "../support/own-pulls.ts";
import { type PullRecord, streamPull } from "../support/pull-stream.ts";
import { patchWith, postWith } from "../support/requests.ts";
import { until } from "../support/scratch.ts";

test("interface 4, Pull: each way to name a model; it is listed and answers when the call does", async (t) => {
  const { hub, gateway } = await startWithHub(t);
  hub.addRepo("acme/one-GGUF", { files: { "one-Q8_0.gguf": modelBytes(talkingModel("one")) } });
  hub.addRepo("acme/many-GGUF", {
    files: {
      "many-Q4_K_M.gguf": modelBytes(talkingModel("four")),
      "many-Q6_K.gguf": modelBytes(talkingModel("six")),
      "many-Q8_0.gguf": modelBytes(talkingModel("eight")),
    },
  });
  hub.addRepo("acme/odd", { files: { "odd-IQ3_S.gguf": Buffer.from("a"), "odd-Q2_K.gguf": Buffer.from("b") } });
  for (const name of [
    "acme/one-GGUF",
    "hf.co/acme/many-GGUF:latest",
    "huggingface.co/acme/many-GGUF:Q8_0",
    "acme/many-GGUF:many-Q6_K.gguf",
  ]) {
    const { status, body } = await pull(gateway, name);
    assert.deepEqual([status, body], [200, { status: "success" }], name);
  }
  const ids = ["acme/many-GGUF:Q4_K_M", "acme/many-GGUF:Q8_0", "acme/many-GGUF:many-Q6_K", "acme/one-GGUF:Q8_0"];
  assert.deepEqual(await modelIds(gateway), ids);
  const texts = await Promise.all(ids.map((id) => gateway.ask(id)));
  assert.deepEqual(
    texts,
    ["four", "eight", "six", "one"].map((name) => answersOf(name).hello),
  );
  assert.deepEqual(await documentModels(gateway), [
    "acme/one-GGUF:Q8_0",
    "acme/many-GGUF:Q4_K_M",
    "acme/many-GGUF:Q8_0",
    "acme/many-GGUF:many-Q6_K",
  ]);

  const ambiguous = await pull(gateway, "acme/odd");
  assert.equal(ambiguous.status, 409);
  assert.match(String(ambiguous.body["error"]), /IQ3_S, Q2_K/);
  for (const [name, how] of [
    ["llama3.2", /^"llama3.2" names no repository: a pull takes OWNER\/NAME,/],
    ["mistral", /^"mistral" names no repository: a pull takes OWNER\/NAME,/],
    ["de_DE-mid-low", /^"de_DE-mid-low" names no repository/],
  ] as const) {
    const { status, body } = await pull(gateway, name);
    assert.equal(status, 400);
    assert.match(String(body["error"]), how);
  }
  assert.equal((await pull(gateway, "acme/nowhere")).status, 404);
  assert.equal(((await documentModels(gateway)) as unknown[]).length, 4);
});

test("interface 4, Pull: one that is here already is named in the document, without the hub", async (t) => {
  const folders = await makeFolders(t);
  const alpha = await cacheTalker(folders, "acme/alpha");
  const gateway = await startTestGateway(t, { folders, yaml: "version: 1\n" });
  await gateway.converged();
  for (const name of [alpha, "acme/alpha", "alpha"]) {
    assert.deepEqual((await pull(gateway, name)).body, { status: "success" }, name);
  }
  assert.deepEqual(await documentModels(gateway), [alpha]);
});

test("interface 4, Pull: two who ask for one model share its download, and both see it go on", async (t) => {
  const { hub, gateway } = await startWithHub(t);
  hub.addRepo("acme/big", { files: { "big-Q8_0.gguf": modelBytes(talkingModel("big")) } });
  const held = hub.throttle("big-Q8_0.gguf", 100_000);
  cleanUp(t, () => held.release());
  const seen = [0, 0];
  const watch =
    (which: number) =>
    (record: PullRecord): void => {
      if (record.status?.startsWith("pulling ") && record.status !== "pulling manifest")
        seen[which] = (seen[which] ?? 0) + 1;
    };
  const first = streamPull(gateway, "acme/big:Q8_0", { onRecord: watch(0) });
  await held.reached;
  const second = streamPull(gateway, "acme/big:q8_0", { onRecord: watch(1) });
  await until("both see it", () => seen.every((count) => count > 0));
  held.release();
  for (const records of await Promise.all([first, second])) assert.deepEqual(records.at(-1), { status: "success" });
  assert.equal(hub.requests.filter(({ origin }) => origin === "storage").length, 1);
  assert.deepEqual(await documentModels(gateway), ["acme/big:Q8_0"]);
});

test("interface 4, Pull: a client that leaves ends it, and nothing is left of it", async (t) => {
  const { hub, gateway } = await startWithHub(t);
  hub.addRepo("acme/big", { files: { "big-Q8_0.gguf": modelBytes(talkingModel("big")) } });
  const held = hub.throttle("big-Q8_0.gguf", 100_000);
  cleanUp(t, () => held.release());
  const leaving = [new AbortController(), new AbortController()];
  const pulls = leaving.map(({ signal }) =>
    streamPull(gateway, "acme/big:Q8_0", { signal }).catch((error: unknown) => error),
  );
  await held.reached;
  await until("a partial is there", async () =>
    (await leftovers(gateway.cacheDir)).some((name) => name.endsWith(".incomplete")),
  );
  await until("both are told", async () => (await documentModels(gateway)) !== undefined);
  leaving[0]?.abort();
  await pulls[0];
  assert.deepEqual(await documentModels(gateway), ["acme/big:Q8_0"]);
  leaving[1]?.abort();
  await pulls[1];
  await held.left;
  await until("it is given up", () => gateway.gateway.status().running.length === 0);
  assert.deepEqual(await documentModels(gateway), []);
  assert.deepEqual(await leftovers(gateway.cacheDir), []);
});

test("interface 4, Pull: what somebody else wants stays wanted when the client leaves", async (t) => {
  const { hub, gateway } = await startWithHub(t);
  hub.addRepo("acme/big", { files: { "big-Q8_0.gguf": modelBytes(talkingModel("big")) } });
  const held = hub.throttle("big-Q8_0.gguf", 100_000);
  cleanUp(t, () => held.release());
  const leaving = new AbortController();
  const pulling = streamPull(gateway, "acme/big:Q8_0", { signal: leaving.signal }).catch((error: unknown) => error);
  await held.reached;
  await gateway.json("/api/desired", patchWith({ models: { "acme/big:Q8_0": { ctxSize: 512 } } }));
  leaving.abort();
  await pulling;
  held.release();
  await gateway.converged();
  assert.deepEqual(await documentModels(gateway), [{ id: "acme/big:Q8_0", ctxSize: 512 }]);
  assert.equal(await gateway.ask("acme/big:Q8_0"), answersOf("big").hello);
});

test("interface 4, Pull: a failure for good is answered, and takes out what the call put in, and nothing else", async (t) => {
  const { hub, gateway } = await startWithHub(t, "version: 1\nmodels: [acme/gated:Q4_0]\n");
  hub.addRepo("acme/gated", { files: { "gated-Q8_0.gguf": modelBytes(talkingModel("gated")) }, gated: true });
  const gated = await pull(gateway, "acme/gated:Q8_0");
  assert.equal(gated.status, 403, JSON.stringify(gated.body));
  const missing = await pull(gateway, "acme/missing:Q8_0");
  assert.equal(missing.status, 404);
  hub.addRepo("acme/page", { files: { "page-Q8_0.gguf": Buffer.alloc(100_000, "<html> ") } });
  const noModel = await pull(gateway, "acme/page:Q8_0");
  assert.deepEqual(
    [noModel.status, noModel.body],
    [400, { error: "page-Q8_0.gguf of acme/page is not a whole GGUF file" }],
  );
  const requests = hub.requests.length;
  assert.equal((await pull(gateway, `acme/${"a".repeat(250)}:Q8_0`)).status, 400);
  assert.equal(hub.requests.length, requests);
  assert.deepEqual(await documentModels(gateway), ["acme/gated:Q4_0"]);
  const named = await pull(gateway, "acme/gated:Q4_0");
  assert.equal(named.status, 404);
  assert.deepEqual(await documentModels(gateway), ["acme/gated:Q4_0"]);
  assert.deepEqual(await leftovers(gateway.cacheDir), []);
});

test("interface 4, Pull: a hub that is away is waited for, but not for ever", async (t) => {
  const { hub, gateway } = await startWithHub(t);
  hub.addRepo("acme/late", { files: { "late-Q8_0.gguf": modelBytes(talkingModel("late")) } });
  hub.failNext({ status: 503, times: 3 });
  // A fourth one, begun as the third fails, would bring the model before the pull is given up.
  const failures = triesAtOnce(t, gateway, 3);
  const { status, body } = await pull(gateway, "acme/late:Q8_0");
  assert.equal(status, 502);
  assert.match(String(body["error"]), /503/);
  assert.equal(failures().length, 3, failures().join("\n"));
  assert.deepEqual(await documentModels(gateway), []);
  assert.deepEqual((await pull(gateway, "acme/late:Q8_0")).body, { status: "success" });
});

test("interface 4, Pull: under suspend it is noted and not made; after a removal it is made anew", async (t) => {
  const { hub, gateway } = await startWithHub(t, "version: 1\nsuspend: true\n");
  hub.addRepo("acme/big", { files: { "big-Q8_0.gguf": modelBytes(talkingModel("big")) } });
  const suspended = await pull(gateway, "acme/big:Q8_0");
  assert.equal(suspended.status, 409);
  assert.deepEqual(await documentModels(gateway), ["acme/big:Q8_0"]);
  await gateway.json("/api/desired?wait=true", patchWith({ suspend: null }));
  assert.deepEqual(await modelIds(gateway), ["acme/big:Q8_0"]);
  const [removed, again] = await Promise.all([
    gateway.json("/api/remove-model", postWith({ model: "acme/big:Q8_0" })),
    until("it is marked", () => gateway.gateway.status().removals.length > 0).then(() =>
      pull(gateway, "acme/big:Q8_0"),
    ),
  ]);
  assert.ok([200, 499].includes(removed.status), JSON.stringify(removed.body));
  assert.equal(again.status, 200, JSON.stringify(again.body));
  await gateway.converged();
  assert.equal(await gateway.ask("acme/big:Q8_0"), answersOf("big").hello);
});
