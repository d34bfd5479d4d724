// One machine pulls from the hub, the others fetch from it or share its cache: the hub sends the bytes once.
import assert from "node:assert/strict";
import { readFile, readlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { downloadFile, listFiles } from "@huggingface/hub";
import { createHubClient } from "../../src/hub/client.ts";
import { cleanUp } from "../support/clean-up.ts";
import { makeFolders } from "../support/folders.ts";
import { eventsOf, startTestGateway } from "../support/gateway.ts";
import { startLoopbackHub } from "../support/loopback-hub.ts";
import { answersOf, modelBytes, talkingModel } from "../support/models.ts";
import { leftovers } from "../support/own-pulls.ts";
import { startPulling } from "../support/pulling.ts";
import { postWith } from "../support/requests.ts";

const repo = "acme/shared-GGUF";
const path = "shared-Q8_0.gguf";
const id = `${repo}:Q8_0`;
const yaml = `version: 1\nprune: true\npruneAfter: 0\nmodels: ["${id}"]\n`;
/** Large enough for a thread of its own. */
const bytes = Buffer.from(modelBytes({ ...talkingModel("shared"), width: 512, feedForward: 4096 }));
const [token, key] = ["hf_of-the-hub-alone", "key-of-the-writer"];
const bearer = { headers: { authorization: `Bearer ${key}` } };

test("the hub sends a model once: others have it from the first gateway's /hub, or from its cache", async (t) => {
  const hub = await startLoopbackHub(t, { tokens: [token] });
  const commit = hub.addRepo(repo, { files: { [path]: bytes } });
  const held = hub.throttle(path, 1_500_000);
  cleanUp(t, () => held.release());
  const environment = { HF_ENDPOINT: hub.endpoint };
  const writer = await startTestGateway(t, { yaml, environment: { ...environment, GATEWAY_LICENSE_KEY: key } });
  await held.reached;
  const file = `${writer.url}/hub/${repo}/resolve/main/${path}`;

  // What is not here yet is worth waiting for.
  const early = await fetch(file, bearer);
  const { error } = (await early.json()) as { error: { code: string } };
  assert.deepEqual([early.status, early.headers.get("x-error-code"), error.code], [503, "StillPulling", "mirror_busy"]);
  // Unless the mirror is the gateway itself.
  const caller = (await readFile(join(writer.stateDir, "gateway.id"), "utf8")).trim();
  assert.equal((await fetch(file, { headers: { ...bearer.headers, "x-gateway-caller": caller } })).status, 404);

  // A gateway that shares the cache waits for the file.
  const own = await makeFolders(t);
  const folders = { ...own, cacheDir: writer.cacheDir };
  const flags = ["--pulls", "off", "--resync", "0.5"];
  const reader = await startTestGateway(t, { folders, yaml, environment, flags });
  await reader.until("waiting for the writer", ({ models }) =>
    models.some(({ conditions }) => conditions.some(({ reason }) => reason === "WaitingForWriter")),
  );
  held.release();
  await reader.converged();
  assert.equal(await reader.ask(id), answersOf("shared").hello);
  const stored = await leftovers(writer.cacheDir);
  for (const [method, address] of [
    ["POST", "/api/models/gc?dryRun=false"],
    ["POST", "/api/remove-model"],
  ] as const) {
    const refused = await reader.json(address, { ...postWith(address.endsWith("model") ? { model: id } : {}), method });
    assert.equal(refused.status, 409, JSON.stringify(refused.body));
    assert.match(JSON.stringify(refused.body), /cache_read_only/);
  }
  await reader.writeConfig("version: 1\nprune: true\npruneAfter: 0\nallowEmpty: true\nmodels: []\n");
  await reader.until("the model left the document", ({ models }) => models.every(({ desired }) => !desired));
  await reader.converged();
  assert.deepEqual(await leftovers(writer.cacheDir), stored);

  // One with a cache of its own has the file from the first one.
  const other = await makeFolders(t);
  const keyFile = join(other.root, "mirror-key");
  await writeFile(keyFile, `${key}\n`);
  const mirrored = await startTestGateway(t, {
    folders: other,
    yaml,
    environment: { ...environment, HF_TOKEN: token },
    flags: ["--hub-mirror", `${writer.url}/hub/`, "--hub-mirror-key-file", keyFile],
  });
  await mirrored.converged();
  assert.equal(await mirrored.ask(id), answersOf("shared").hello);
  assert.equal(hub.sentBytes(path), bytes.length);
  assert.deepEqual(eventsOf(mirrored.gateway, "mirror"), []);

  // The hub's own client, and what a client must not get.
  const hubUrl = `${writer.url}/k/${key}/hub`;
  const blob = await downloadFile({ repo, path, hubUrl });
  assert.deepEqual(Buffer.from((await blob?.arrayBuffer()) ?? new ArrayBuffer(0)), bytes);
  const listed: string[] = [];
  for await (const entry of listFiles({ repo, hubUrl })) listed.push(`${entry.path} ${entry.size} ${entry.lfs?.oid}`);
  const digest = (await readlink(join(writer.cacheDir, "models--acme--shared-GGUF", "snapshots", commit, path))).slice(
    -64,
  );
  assert.deepEqual(listed, [`${path} ${bytes.length} ${digest}`]);
  const head = await fetch(file, { ...bearer, method: "HEAD" });
  assert.deepEqual(
    ["etag", "x-linked-etag", "x-linked-size", "x-repo-commit", "content-length"].map((name) => head.headers.get(name)),
    [`"${digest}"`, `"${digest}"`, String(bytes.length), commit, String(bytes.length)],
  );
  const part = await fetch(file, { headers: { ...bearer.headers, range: "bytes=10-19" } });
  assert.deepEqual([part.status, part.headers.get("content-range")], [206, `bytes 10-19/${bytes.length}`]);
  assert.deepEqual(Buffer.from(await part.arrayBuffer()), bytes.subarray(10, 20));
  assert.equal((await fetch(file, { headers: { ...bearer.headers, range: "bytes=99999999-" } })).status, 416);
  assert.equal((await fetch(file)).status, 401);
  for (const bad of [
    file.replace(path, "..%2f..%2frefs%2fmain"),
    file.replace(path, "no.gguf"),
    file.replace("main", "v1"),
  ]) {
    const refused = await fetch(bad, bearer);
    assert.deepEqual([refused.status, refused.headers.get("x-error-code")], [404, "EntryNotFound"], bad);
  }

  // As the only hub of a machine that reaches no other, for a pull that had begun elsewhere: it resumes.
  const pulling = await startPulling(t);
  pulling.hub.addRepo(repo, { files: { [path]: bytes } });
  const broken = pulling.hub.throttle(path, 1_500_000);
  const stop = new AbortController();
  const first = pulling.refusal(id, {
    signal: stop.signal,
    isStillWanted: () => true,
    tuning: { gatherBytes: 65_536 },
  });
  await broken.reached;
  await pulling.hub.close();
  stop.abort();
  await first;

  const client = createHubClient({ endpoint: `${writer.url}/hub`, token: key });
  cleanUp(t, () => client.close());
  const pulled = await pulling.pull(id, { client });
  assert.ok(pulled.resumedBytes > 0, "nothing was resumed");
  assert.equal(pulled.downloadedBytes, bytes.length - pulled.resumedBytes);
  assert.deepEqual(await readFile(join(pulling.cacheDir, "models--acme--shared-GGUF", "blobs", digest)), bytes);
  assert.equal(hub.sentBytes(path), bytes.length);
});
