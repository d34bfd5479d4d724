// License keys on a running gateway: what needs one, how it is presented, and what somebody without one learns.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createConnection } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { addKey, removeKey } from "../../src/keys/key-changes.ts";
import { keyFileName } from "../../src/keys/key-file.ts";
import { cacheTalker, type GatewayFolders, makeFolders } from "../support/folders.ts";
import { startTestGateway, streamChat } from "../support/gateway.ts";
import { answersOf } from "../support/models.ts";
import { childrenOf } from "../support/processes.ts";
import { chatWith } from "../support/requests.ts";
import { until } from "../support/scratch.ts";
import { watchRoutes } from "../support/served-routes.ts";

const single = "a-key-of-the-tests/with?more";

async function create({ stateDir }: GatewayFolders, name: string, expiresAt?: string): Promise<string> {
  return (await addKey(join(stateDir, keyFileName), { name, expiresAt, now: Date.now() })).key;
}

function revoke({ stateDir }: GatewayFolders, name: string): Promise<unknown> {
  return removeKey(join(stateDir, keyFileName), name);
}

function bearer(key: string, init: RequestInit = {}): RequestInit {
  const headers = new Headers(init.headers);
  headers.set("authorization", `Bearer ${key}`);
  return { ...init, headers };
}

/** What anybody may call, as the interface and the health checks have it; below, `{}` is any one part of a path. */
const open = [
  "/",
  "/alpha",
  "/beta",
  "/ui",
  "/ui/{}",
  "/livez",
  "/readyz",
  "/status",
  "/api/hf/search",
  "/api/hf/repo-files",
  "/beta/v1/audio/transcriptions",
  "/beta/v1/audio/speech",
  "/v1/audio/transcriptions",
  "/v1/audio/speech",
  "/alpha/v1/audio/transcriptions",
  "/alpha/v1/audio/speech",
  "/api/tts/voices/cached",
  "/api/tts/voices/search",
  "/api/stt/models/cached",
  "/api/stt/models/search",
];

test("interface 5, Authentication: every route needs a key but those that need none", async (t) => {
  const routes = watchRoutes(t);
  const gateway = await startTestGateway(t, { yaml: "version: 1\n", environment: { GATEWAY_LICENSE_KEY: single } });
  await gateway.converged();
  assert.ok(routes.length > 40, "the routes are seen");

  for (const { method, path } of routes) {
    const url = gateway.url + path.replaceAll("{}", "x");
    const body = ["POST", "PUT", "PATCH"].includes(method) ? { body: "{}" } : {};
    const response = await fetch(url, { method, headers: { "content-type": "application/json" }, ...body });
    const text = await response.text();
    if (open.includes(path)) assert.notEqual(response.status, 401, `${method} ${path} is open`);
    else assert.equal(response.status, 401, `${method} ${path} needs a key: ${text}`);
  }
  for (const path of open)
    assert.ok(
      routes.some((route) => route.path === path),
      `${path} is served`,
    );
  for (const path of ["/nothing", "/beta/v1/nothing", "/%zz", "/api/desired%00", "/alpha/api/nothing/at/all"])
    assert.equal((await fetch(gateway.url + path)).status, 401, path);
  assert.equal((await fetch(`${gateway.url}/nothing`, bearer(single))).status, 404);
  assert.equal((await fetch(`${gateway.url}/status`, { method: "OPTIONS" })).status, 401);
});

test("interface 5, Authentication: license keys on a running gateway", async (t) => {
  const folders = await makeFolders(t);
  const model = await cacheTalker(folders, "acme/alpha");
  const gateway = await startTestGateway(t, {
    folders,
    yaml: `version: 1\nmodels: ["${model}"]\n`,
    environment: { GATEWAY_LICENSE_KEY: single },
  });
  await gateway.converged();

  await t.test("are presented in a header, or in the address", async () => {
    const key = await create(folders, "laptop");
    const encoded = encodeURIComponent(single);
    const ways: readonly (readonly [path: string, headers: Record<string, string>])[] = [
      ["/api/desired", { authorization: `Bearer ${key}` }],
      ["/api/desired", { authorization: `bearer  ${single} ` }],
      ["/api/desired", { "x-license-key": key }],
      ["/api/desired", { "X-API-Key": key }],
      [`/k/${key}/api/desired`, {}],
      [`/k/${encoded}/api/desired`, {}],
      [`//k/${encoded}//api/desired/?x=1`, {}],
      // Clients that must send some key send a made-up one.
      [`/k/${key}/api/desired`, { authorization: "Bearer ollama", "x-api-key": "none" }],
      [`/k/${key}/beta/v1/models/${model}`, {}],
      [`/k/${key}/beta/v1/models/${encodeURIComponent(model)}`, {}],
      [`/k/${key}/alpha/api/tags?a=/k/b`, {}],
    ];
    for (const [path, headers] of ways) {
      const response = await fetch(gateway.url + path, { headers });
      assert.equal(response.status, 200, `${path} ${JSON.stringify(headers)}: ${await response.text()}`);
    }
    const answer = await streamChat(`${gateway.url}/k/${key}`, model, "hi");
    assert.deepEqual([answer.text, answer.done], [answersOf("acme/alpha").hello, true]);
    assert.match(await (await fetch(`${gateway.url}/k/${key}`)).text(), /Ollama is running/);
    await revoke(folders, "laptop");
  });

  await t.test("that are none are refused in each family's shape, with no word of what there is", async () => {
    const key = await create(folders, "gone");
    await revoke(folders, "gone");
    const expired = await create(folders, "expired", new Date(Date.now() - 1_000).toISOString());
    const ways: readonly (readonly [prefix: string, headers: Record<string, string>])[] = [
      ["", {}],
      ["", { authorization: `Bearer ${key}` }],
      ["", { authorization: `Bearer ${expired}` }],
      ["", { authorization: `Basic ${single}` }],
      ["", { authorization: single }],
      ["", { "x-license-key": `${single}, ${single}` }],
      [`/k/${key}`, {}],
      ["/k/%zz", {}],
      [`/k/${encodeURIComponent(single.toUpperCase())}`, {}],
    ];
    for (const [prefix, headers] of ways) {
      const ask = async (path: string, init: RequestInit = {}): Promise<readonly [number, string]> => {
        const all = new Headers(init.headers);
        for (const [name, value] of Object.entries(headers)) all.set(name, value);
        const response = await fetch(gateway.url + prefix + path, { ...init, headers: all });
        assert.equal(response.headers.get("www-authenticate"), "Bearer");
        const text = await response.text();
        for (const secret of [key, expired, single]) assert.ok(!text.includes(secret), text);
        return [response.status, text];
      };
      const about = `${prefix} ${JSON.stringify(headers)}`;
      const [status, text] = await ask("/beta/v1/chat/completions", chatWith(model));
      assert.equal(status, 401, about);
      assert.deepEqual([status, text], await ask("/beta/v1/chat/completions", chatWith("acme/none:Q8_0")), about);
      assert.deepEqual([status, text], await ask(`/beta/v1/models/${model}`), about);
      assert.deepEqual([status, text], await ask("/beta/v1/models/acme/none:Q8_0"), about);
      assert.deepEqual([status, text], await ask("/beta/v1/no/such/route"), about);
      const compat = (JSON.parse(text) as { error: Record<string, unknown> }).error;
      assert.deepEqual([compat["code"], typeof compat["message"]], ["unauthorized", "string"]);

      const native = await ask("/alpha/api/chat", chatWith(model));
      assert.deepEqual(native, await ask("/alpha/api/show", chatWith("acme/none:Q8_0")), about);
      assert.equal(typeof (JSON.parse(native[1]) as { error: unknown }).error, "string", about);

      const own = await ask("/api/eject-model", chatWith(model));
      assert.deepEqual(own, await ask("/api/remove-model", chatWith("acme/none:Q8_0")), about);
      assert.deepEqual(own, await ask("/api/desired"), about);
      const { code, hint } = (JSON.parse(own[1]) as { error: Record<string, string> }).error;
      assert.equal(code, "unauthorized");
      assert.match(hint ?? "", /\/k\/KEY/);
    }
  });

  await t.test("leave the open routes open, whatever is presented there; the status is short without one", async () => {
    for (const init of [{}, bearer("wrong")]) {
      assert.equal((await fetch(`${gateway.url}/livez`, init)).status, 200);
      const { status, body } = await gateway.json("/status", init);
      assert.equal(status, 200);
      assert.ok(!JSON.stringify(body).includes(model));
      assert.equal(typeof (body["gateway"] as Record<string, unknown>)["version"], "string");
    }
    assert.equal((await fetch(`${gateway.url}/k/wrong/livez`)).status, 200);
    assert.ok(JSON.stringify((await gateway.json("/status", bearer(single))).body).includes(model));
  });

  await t.test("come at once, and go within a moment", async () => {
    for (let round = 0; round < 3; round++) {
      const key = await create(folders, "brief");
      const statusNow = async (): Promise<number> => (await fetch(`${gateway.url}/api/desired`, bearer(key))).status;
      assert.equal(await statusNow(), 200);
      await revoke(folders, "brief");
      await until("the key is refused", async () => (await statusNow()) === 401);
    }
  });

  await t.test("end the event streams that they opened, at once", async () => {
    const key = await create(folders, "watcher");
    const response = await fetch(`${gateway.url}/api/events`, bearer(key));
    assert.equal(response.status, 200);
    await revoke(folders, "watcher");
    const revokedAt = performance.now();
    const text = await response.text();
    assert.ok(performance.now() - revokedAt < 12_000, "long before a sign of life is due");
    assert.match(text, /: the license key is no longer valid\n\n$/);
  });

  await t.test("are asked for before a body is read", async () => {
    const { hostname, port } = new URL(gateway.url);
    const socket = createConnection(Number(port), hostname);
    // The body is announced, larger than any that is taken, and never sent.
    socket.write(
      `POST /beta/v1/chat/completions HTTP/1.1\r\nHost: ${hostname}\r\nContent-Type: application/json\r\nContent-Length: 900000000\r\n\r\n`,
    );
    const [first] = await new Promise<Buffer[]>((resolve) => socket.once("data", (chunk: Buffer) => resolve([chunk])));
    socket.destroy();
    assert.match(first?.toString() ?? "", /^HTTP\/1\.1 401 /);
  });

  await t.test("are never told again: not by a path that is not found, nor to the engines", async () => {
    const { body } = await gateway.json(`/k/${encodeURIComponent(single)}/nothing/here`);
    assert.match(JSON.stringify(body), /there is no \/nothing\/here/);
    const children = await childrenOf(process.pid);
    const environments = await Promise.all(children.map((pid) => readFile(`/proc/${pid}/environ`, "utf8")));
    assert.ok(
      environments.some((text) => text.includes("LLAMA_API_KEY")),
      "the router is among them",
    );
    for (const text of environments) assert.ok(!text.includes("GATEWAY_LICENSE_KEY") && !text.includes(single));
  });
});

test("interface 5, Authentication: without a key, this machine alone needs none", async (t) => {
  const folders = await makeFolders(t);
  const gateway = await startTestGateway(t, { folders, yaml: "version: 1\n" });
  await gateway.converged();
  const { url } = gateway;
  assert.equal((await fetch(`${url}/api/desired`)).status, 200);
  assert.equal((await fetch(`${url}/api/desired`, bearer("made-up"))).status, 200);
  assert.equal((await fetch(`${url}/k/made-up/api/desired`)).status, 200);

  const key = await create(folders, "first");
  await until("a key is needed", async () => (await fetch(`${url}/api/desired`)).status === 401);
  assert.equal((await fetch(`${url}/api/desired`, bearer(key))).status, 200);
  await create(folders, "expired", new Date(Date.now() - 1_000).toISOString());
  assert.equal((await fetch(`${url}/api/desired`)).status, 401);
  // The list is empty then, and valid.
  for (const name of ["first", "expired"]) await revoke(folders, name);
  await until("the key is refused", async () => (await fetch(`${url}/api/desired`, bearer(key))).status === 401);
  assert.equal((await fetch(`${url}/api/desired`)).status, 401);
});
