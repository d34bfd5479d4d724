// The routes that companion apps call without a license key, and the hub's token that works for all of them.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { entriesBelow } from "../../src/state/folder.ts";
import { makeFolders } from "../support/folders.ts";
import { startTestGateway, type TestGateway } from "../support/gateway.ts";
import { startLoopbackHub } from "../support/loopback-hub.ts";
import { answersOf, modelBytes, talkingModel } from "../support/models.ts";
import { postWith } from "../support/requests.ts";

const key = "mgw-test-key-of-a-sufficient-length-0123456789";
const token = "hf_the-gateways-own-token-of-the-tests";

type Call = readonly [path: string, init?: RequestInit | undefined];

function speech(): readonly Call[] {
  const form = new FormData();
  form.set("file", new Blob([Buffer.alloc(1000)]), "a.wav");
  return [
    ["/beta/v1/audio/transcriptions", { method: "POST", body: form }],
    ["/beta/v1/audio/speech", postWith({ input: "Hello", voice: "en_US-lessac-medium" })],
    ["/api/tts/voices/cached"],
    ["/api/tts/voices/search?q=en"],
    ["/api/stt/models/cached"],
    ["/api/stt/models/search?q=base"],
  ];
}

async function answerTo(
  gateway: TestGateway,
  [path, init]: Call,
  headers: Readonly<Record<string, string>>,
): Promise<unknown> {
  const all = new Headers(init?.headers);
  for (const [name, value] of Object.entries(headers)) all.set(name, value);
  const { status, body } = await gateway.json(path, { ...init, headers: all });
  return { status, body };
}

test("interface 5, Routes without a key: whoever asks is answered as somebody with a key is", async (t) => {
  const hub = await startLoopbackHub(t);
  hub.addRepo("acme/talk-GGUF", { files: { "talk-Q8_0.gguf": Buffer.from("eight") }, downloads: 7, likes: 2 });
  const gateway = await startTestGateway(t, {
    yaml: "version: 1\n",
    environment: { HF_ENDPOINT: hub.endpoint, GATEWAY_LICENSE_KEY: key },
  });
  assert.equal((await gateway.json("/api/desired")).status, 401);

  const calls: readonly Call[] = [
    ["/api/hf/search?q=talk"],
    ["/api/hf/search?q=talk&limit=1"],
    ["/api/hf/repo-files?repo=acme/talk-GGUF"],
    ...speech(),
  ];
  for (const call of calls) {
    const [path] = call;
    const licensed = await answerTo(gateway, call, { authorization: `Bearer ${key}` });
    for (const headers of [{}, { authorization: "Bearer wrong" }, { "x-license-key": "wrong" }]) {
      assert.deepEqual(await answerTo(gateway, call, headers), licensed, `${path} ${JSON.stringify(headers)}`);
    }
    assert.deepEqual(await answerTo(gateway, [`/k/wrong${path}`, call[1]], {}), licensed, `/k/wrong${path}`);
    if (path.startsWith("/api/hf/")) assert.equal((licensed as { status: number }).status, 200, path);
  }
});

test("interface 5, Hub token: gated and private repositories for clients that have none, and it goes to the hub alone", async (t) => {
  const hub = await startLoopbackHub(t);
  // From now on a request with another token than the gateway's, or with none, is refused.
  hub.requireToken(token);
  const files = { "secret-Q8_0.gguf": modelBytes(talkingModel("secret")) };
  hub.addRepo("acme/secret-GGUF", { files, private: true });
  hub.addRepo("acme/gated-GGUF", { files: { "gated-Q8_0.gguf": modelBytes(talkingModel("gated")) }, gated: true });
  const folders = await makeFolders(t);
  const gateway = await startTestGateway(t, {
    folders,
    yaml: "version: 1\n",
    environment: { HF_ENDPOINT: hub.endpoint, HF_TOKEN: token, GATEWAY_LICENSE_KEY: key },
  });
  const answers: unknown[] = [];
  // Clients send a license key, a token of their own, or nothing: none of it reaches the hub.
  for (const [n, headers] of [
    {},
    { authorization: `Bearer ${key}` },
    { authorization: "Bearer hf_a-clients-own" },
  ].entries()) {
    const found = await gateway.json(`/api/hf/search?q=${["gated", "gated-", "gated-G"][n]}`, { headers });
    assert.deepEqual([found.status, (found.body as unknown as { id: string }[])[0]?.id], [200, "acme/gated-GGUF"]);
    const listed = await gateway.json("/api/hf/repo-files?repo=acme/secret-GGUF", { headers });
    assert.equal((listed.body as unknown as { path: string }[])[0]?.path, "secret-Q8_0.gguf");
    answers.push(found, listed);
  }
  const withKey = (init: RequestInit): RequestInit => ({
    ...init,
    headers: { ...(init.headers as Record<string, string>), "x-license-key": key },
  });
  for (const model of ["acme/secret-GGUF:Q8_0", "acme/gated-GGUF:Q8_0"]) {
    const pulled = await gateway.json("/alpha/api/pull", withKey(postWith({ model, stream: false })));
    assert.deepEqual([pulled.status, pulled.body], [200, { status: "success" }], model);
    const chat = await gateway.json(
      "/beta/v1/chat/completions",
      withKey(postWith({ model, messages: [{ role: "user", content: "hi" }] })),
    );
    assert.ok(JSON.stringify(chat.body).includes(answersOf(model.includes("gated") ? "gated" : "secret").hello));
  }
  assert.deepEqual(
    new Set(hub.requests.map(({ origin, authorized }) => `${origin} ${String(authorized)}`)),
    new Set(["hub true", "storage false"]),
  );

  for (const path of ["/api/desired", "/status", "/api/plan", "/beta/v1/models"])
    answers.push(await gateway.json(path, withKey({})));
  assert.ok(!JSON.stringify(answers).includes(token));
  // So that no file is replaced meanwhile.
  await gateway.gateway.stop();
  for (const entry of await entriesBelow(folders.stateDir)) {
    if (!entry.isFile()) continue;
    assert.ok(!(await readFile(join(entry.parentPath, entry.name), "utf8")).includes(token), entry.name);
  }
});

test("interface 5, Hub token: without one a gated repository is refused, and the message says so", async (t) => {
  const hub = await startLoopbackHub(t);
  hub.addRepo("acme/gated-GGUF", { files: { "gated-Q8_0.gguf": Buffer.from("x") }, gated: true });
  const gateway = await startTestGateway(t, { yaml: "version: 1\n", environment: { HF_ENDPOINT: hub.endpoint } });
  const answer = await gateway.json("/alpha/api/pull", postWith({ model: "acme/gated-GGUF:Q8_0", stream: false }));
  assert.equal(answer.status, 403, JSON.stringify(answer.body));
  assert.match(JSON.stringify(answer.body), /HF_TOKEN|token/);
});
