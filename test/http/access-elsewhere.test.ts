// A gateway that other machines reach: refused without a license key, and never open, whatever becomes of the keys.
import assert from "node:assert/strict";
import { rm, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { addKey, removeKey } from "../../src/keys/key-changes.ts";
import { keyFileName } from "../../src/keys/key-file.ts";
import { makeFolders } from "../support/folders.ts";
import { startTestGateway } from "../support/gateway.ts";
import { refusal, until } from "../support/scratch.ts";

/** With headers that fetch does not let through. Answers with the status. */
function get(url: string, headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    request(url, { headers }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    })
      .on("error", reject)
      .end();
  });
}

test("interface 5, Authentication: no license key, no other machines", async (t) => {
  for (const host of ["0.0.0.0", "::", "10.255.255.1", "gateway.example"]) {
    const { code, message } = await refusal(startTestGateway(t, { yaml: "version: 1\n", flags: ["--host", host] }));
    assert.equal(code, "invalid_request");
    assert.ok(message.includes(host), message);
    assert.match(message, /`node \S+ key create NAME --state \S+`/);
  }
});

test("interface 5, Authentication: nor do other machines reach a gateway whose last key is revoked before its start", async (t) => {
  const folders = await makeFolders(t);
  const path = join(folders.stateDir, keyFileName);
  await addKey(path, { name: "only", expiresAt: undefined, now: Date.now() });
  await removeKey(path, "only");
  const { message } = await refusal(
    startTestGateway(t, { folders, yaml: "version: 1\n", flags: ["--host", "0.0.0.0"] }),
  );
  assert.match(message, /there is no license key: .* key create NAME/);
});

test("interface 5, Authentication: a start is refused where the keys cannot be understood", async (t) => {
  const folders = await makeFolders(t);
  await writeFile(join(folders.stateDir, keyFileName), '{"version":1,"keys":"mgw_SECRET"}');
  const { message } = await refusal(startTestGateway(t, { folders, yaml: "version: 1\n" }));
  assert.match(message, /license-keys\.json cannot be understood: `keys` is no list/);
});

test("interface 5, Authentication: a gateway that other machines reach", async (t) => {
  const folders = await makeFolders(t);
  const path = join(folders.stateDir, keyFileName);
  const { key } = await addKey(path, { name: "only", expiresAt: undefined, now: Date.now() });
  const gateway = await startTestGateway(t, { folders, yaml: "version: 1\n", flags: ["--host", "0.0.0.0"] });
  const port = new URL(gateway.url).port;
  const url = `http://127.0.0.1:${port}/api/desired`;
  const licensed = { authorization: `Bearer ${key}` };

  // From this machine too.
  assert.deepEqual([await get(url, {}), await get(url, licensed)], [401, 200]);
  // By whatever name it is known there.
  assert.deepEqual(
    [await get(url, { ...licensed, host: "box.lan:8484" }), await get(url, { host: "box.lan:8484" })],
    [200, 401],
  );
  const page = { ...licensed, host: "box.lan:8484" };
  assert.equal(await get(url, { ...page, origin: "http://box.lan:8484" }), 200);
  assert.equal(await get(url, { ...page, origin: "http://box.lan:9000" }), 403);
  assert.equal(await get(url, { ...page, origin: "https://evil.example" }), 403);
  assert.equal(await get(url, { ...page, origin: "null" }), 403);

  await rm(path);
  assert.deepEqual([await get(url, {}), await get(url, licensed)], [401, 200], "a file that vanished changes nothing");
  await writeFile(path, "half of a fi");
  assert.deepEqual([await get(url, {}), await get(url, licensed)], [401, 200], "nor does one that is broken");

  await rm(path);
  await addKey(path, { name: "only", expiresAt: undefined, now: Date.now() });
  await removeKey(path, "only");
  await until("the key is refused", async () => (await get(url, licensed)) === 401);
  assert.equal(await get(url, {}), 401, "without a key it is never open");
  assert.equal(await get(`http://127.0.0.1:${port}/livez`, {}), 200);
});
