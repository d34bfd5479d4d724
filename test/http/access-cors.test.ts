// Pages of other origins, as a browser meets the gateway: what is refused, what is told, and that streams are told it too.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { cacheTalker, makeFolders } from "../support/folders.ts";
import { startTestGateway, type TestGateway } from "../support/gateway.ts";
import { answersOf } from "../support/models.ts";
import { chatWith } from "../support/requests.ts";

const page = "https://chat.example";
const key = "a-key-of-the-tests-of-pages";

function from(origin: string, init: RequestInit = {}): RequestInit {
  const headers = new Headers(init.headers);
  headers.set("origin", origin);
  headers.set("authorization", `Bearer ${key}`);
  return { ...init, headers };
}

function preflight(origin: string, headers: Record<string, string> = {}): RequestInit {
  return { method: "OPTIONS", headers: { origin, "access-control-request-method": "POST", ...headers } };
}

/** The headers that are for browsers. */
function told({ headers }: Response): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => name.startsWith("access-control-") || name === "vary"));
}

const toldAlways = {
  vary: "Origin",
  "access-control-allow-origin": page,
  "access-control-expose-headers": "x-context-size, x-should-retry, etag, retry-after",
};

async function start(t: TestContext, flags: readonly string[]): Promise<TestGateway> {
  const folders = await makeFolders(t);
  const model = await cacheTalker(folders, "acme/alpha");
  const gateway = await startTestGateway(t, {
    folders,
    yaml: `version: 1\nmodels: ["${model}"]\n`,
    environment: { GATEWAY_LICENSE_KEY: key },
    flags,
  });
  await gateway.converged();
  return gateway;
}

test("interface 5, Authentication: an origin of the allow-list", async (t) => {
  const gateway = await start(t, ["--cors-origin", `https://other.example,${page}/`]);
  const { url } = gateway;

  await t.test("asks before without a key, and is told what it may do", async () => {
    for (const path of [
      "/beta/v1/chat/completions",
      "/alpha/api/chat",
      "/api/desired",
      "/nothing",
      `/k/${key}/status`,
    ]) {
      const response = await fetch(
        url + path,
        preflight(page, {
          "access-control-request-headers": "authorization,content-type,x-stainless-os",
          "access-control-request-private-network": "true",
        }),
      );
      assert.deepEqual([response.status, await response.text()], [204, ""], path);
      assert.deepEqual(told(response), {
        ...toldAlways,
        vary: "Origin, Access-Control-Request-Headers",
        "access-control-allow-methods": "GET, HEAD, POST, PUT, PATCH, DELETE",
        "access-control-allow-headers": "authorization,content-type,x-stainless-os",
        "access-control-allow-private-network": "true",
        "access-control-max-age": "600",
      });
    }
  });

  await t.test("reads every answer: whole, streamed, an error, a refusal", async () => {
    const asks: readonly (readonly [what: string, path: string, init: RequestInit, status: number])[] = [
      ["own", "/api/desired", from(page), 200],
      ["streamed", "/beta/v1/chat/completions", from(page, chatWith("acme/alpha", "hi", { stream: true })), 200],
      ["whole", "/beta/v1/chat/completions", from(page, chatWith("acme/alpha")), 200],
      ["native, streamed", "/alpha/api/chat", from(page, chatWith("acme/alpha")), 200],
      ["not found", "/nothing", from(page), 404],
      ["no such model", "/beta/v1/chat/completions", from(page, chatWith("acme/none")), 404],
      ["bad body", "/beta/v1/chat/completions", from(page, { method: "POST", body: "{" }), 415],
      ["no key", "/api/desired", { headers: { origin: page } }, 401],
      ["without an answer's body", "/status", from(page, { method: "HEAD" }), 200],
    ];
    for (const [what, path, init, status] of asks) {
      const response = await fetch(url + path, init);
      const text = await response.text();
      assert.equal(response.status, status, `${what}: ${text}`);
      assert.deepEqual(told(response), toldAlways, what);
      if (what.endsWith("streamed")) assert.ok(text.includes(answersOf("acme/alpha").hello.split(" ")[0] ?? "-"), text);
    }
    const following = new AbortController();
    const events = await fetch(`${url}/api/events`, { ...from(page), signal: following.signal });
    following.abort();
    assert.deepEqual(told(events), toldAlways);
  });

  await t.test("is the only kind that is told anything", async () => {
    const local = "http://localhost:3000";
    const allowed = await fetch(`${url}/api/desired`, from(local));
    assert.deepEqual([allowed.status, told(allowed)], [200, { vary: "Origin" }]);
    const asked = await fetch(`${url}/api/desired`, preflight(local));
    assert.deepEqual([asked.status, told(asked)], [401, { vary: "Origin" }]);
    assert.deepEqual(told(await fetch(`${url}/livez`)), { vary: "Origin" });
    for (const origin of ["https://evil.example", "null", `${page}:8443`, "http://chat.example"]) {
      for (const init of [from(origin), preflight(origin)]) {
        const response = await fetch(`${url}/api/desired`, init);
        const { error } = (await response.json()) as { error: { code: string } };
        assert.deepEqual([response.status, error.code, told(response)], [403, "forbidden_origin", {}], origin);
      }
    }
  });
});

test("interface 5, Authentication: without an allow-list no page of another origin is told anything", async (t) => {
  const { url } = await start(t, []);
  for (const init of [from(page), preflight(page)]) {
    const response = await fetch(`${url}/api/desired`, init);
    assert.deepEqual([response.status, told(response)], [403, {}]);
  }
  for (const origin of ["http://localhost:3000", "vscode-webview://0abc"]) {
    const response = await fetch(`${url}/api/desired`, from(origin));
    assert.deepEqual([response.status, told(response)], [200, {}], origin);
  }
});
