// A plain chat goes past the framework, and the same one with a slash at its path's end does not: they get the same answers.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { addKey } from "../../src/keys/key-changes.ts";
import { keyFileName } from "../../src/keys/key-file.ts";
import { cacheTalker, makeFolders } from "../support/folders.ts";
import { startTestGateway } from "../support/gateway.ts";
import { rawClient, rawPost } from "../support/raw-client.ts";
import { chatWith } from "../support/requests.ts";

const id = "acme/alpha:Q8_0";
const chat = chatWith(id).body as string;
const withMore = (members: object): string => JSON.stringify({ ...(JSON.parse(chat) as object), ...members });

const bodies: readonly (readonly [what: string, body: string])[] = [
  ["a chat", chat],
  ["a stream", withMore({ stream: true })],
  ["another spelling of the model", withMore({ model: "ACME/alpha:q8_0" })],
  ["a context size", withMore({ ctx_size: 640 })],
  ["an unload", withMore({ keep_alive: 0 })],
  ["an unknown model", withMore({ model: "acme/none" })],
  ["no model", withMore({ model: undefined })],
  ["a wrong member", withMore({ stream: "yes" })],
  ["what the engine refuses", withMore({ messages: "none" })],
  ["no JSON", '{"model": "a",}'],
  ["a list", "[]"],
  ["nothing", ""],
  ["more than is plain", withMore({ user: "x".repeat(20_000) })],
];

/** What differs from answer to answer. */
const unsteady =
  /"(?:id|created|\w+_ms|\w+_per_second|\w+_per_token_ms|cache_n|prompt_n|cached_tokens|input_tokens|cache_read_input_tokens)":(?:"[^"]*"|[\d.]+)/g;

async function answer(url: string, init: RequestInit): Promise<unknown> {
  const response = await fetch(url, init);
  const text = (await response.text()).replaceAll(unsteady, "");
  const named = ["content-type", "www-authenticate", "retry-after", "x-context-size"];
  return [response.status, named.map((name) => response.headers.get(name)), text];
}

test("the same status, headers and text either way, whoever asks", async (t) => {
  const folders = await makeFolders(t);
  assert.equal(await cacheTalker(folders, "acme/alpha"), id);
  const create = (name: string, scope: "all" | "chat") =>
    addKey(join(folders.stateDir, keyFileName), { name, scope, expiresAt: undefined, now: Date.now() });
  const [all, chatOnly] = [await create("all", "all"), await create("chat", "chat")];
  const gateway = await startTestGateway(t, { folders, yaml: `version: 1\nmodels: ["${id}"]\n` });
  await gateway.converged();
  const clients: Readonly<Record<string, Record<string, string>>> = {
    all: { authorization: `Bearer ${all.key}` },
    chat: { "x-api-key": chatOnly.key },
    none: {},
    wrong: { authorization: "Bearer mgw-wrong" },
    page: { authorization: `Bearer ${all.key}`, origin: "https://elsewhere.example" },
  };
  for (const path of ["/v1/chat/completions", "/beta/v1/messages", "/v1/embeddings", "/completion"]) {
    for (const [who, headers] of Object.entries(clients)) {
      for (const [what, body] of bodies) {
        const init = { method: "POST", headers: { ...headers, "content-type": "application/json" }, body };
        const plain = await answer(gateway.url + path, init);
        assert.deepEqual(plain, await answer(`${gateway.url}${path}/`, init), `${path} by ${who}: ${what}`);
      }
    }
  }
});

test("a body that is larger than --body-limit, and another host's name, are refused either way", async (t) => {
  const folders = await makeFolders(t);
  assert.equal(await cacheTalker(folders, "acme/alpha"), id);
  const gateway = await startTestGateway(t, {
    folders,
    yaml: `version: 1\nmodels: ["${id}"]\n`,
    flags: ["--body-limit", "1024"],
  });
  await gateway.converged();
  for (const path of ["/v1/chat/completions", "/v1/chat/completions/"]) {
    const large = await gateway.json(path, { ...chatWith(id), body: withMore({ user: "x".repeat(2_000) }) });
    assert.equal(large.status, 413, path);
    const client = await rawClient(t, gateway.url);
    client.send(rawPost(path, JSON.parse(chat) as object).replace("host: 127.0.0.1", "host: elsewhere.example"));
    assert.match(await client.until(/\r\n\r\n/), /^HTTP\/1\.1 403 /, path);
  }
});
