// The gateway's own routes on models, workers and the hub: what they take, what they refuse and in which words.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { StatusReport } from "../../src/status/report.ts";
import { cacheTalker, makeFolders } from "../support/folders.ts";
import { startTestGateway } from "../support/gateway.ts";
import { startLoopbackHub } from "../support/loopback-hub.ts";
import { codeOf, messageOf } from "../support/own-calls.ts";
import { patchWith, postWith } from "../support/requests.ts";

const posts = [
  "/api/set-ctx-size",
  "/api/eject-model",
  "/api/remove-model",
  "/api/rpc/mode",
  "/api/rpc/workers",
  "/api/rpc/workers/remove",
];

test("interface 7, Errors: bodies that cannot be are refused with every problem, and nothing is changed", async (t) => {
  const folders = await makeFolders(t);
  const model = await cacheTalker(folders, "acme/alpha");
  const gateway = await startTestGateway(t, { folders, yaml: "version: 1\n" });
  const before = await gateway.json("/api/desired");

  for (const [path, body, message] of [
    ["/api/set-ctx-size", {}, "model is missing; ctx_size is missing"],
    ["/api/set-ctx-size", { model, ctx_size: "8192" }, "ctx_size must be an integer"],
    ["/api/set-ctx-size", { model, ctx_size: 10.5 }, "ctx_size must be an integer"],
    ["/api/set-ctx-size", { model, ctx_size: 0 }, "ctx_size must be >= 1"],
    ["/api/set-ctx-size", { model, ctx_size: 1e9 }, "ctx_size must be <= 16777216"],
    ["/api/set-ctx-size", { model: "", ctx_size: 512 }, "model must not be empty"],
    [
      "/api/set-ctx-size",
      { model: 5, ctxSize: 1 },
      /^ctx_size is missing; unknown field ctxSize: model, ctx_size are known here; model must be a string$/,
    ],
    ["/api/eject-model", { name: model }, "model is missing; unknown field name: model are known here"],
    ["/api/remove-model", { model: null }, "model must be a string"],
    ["/api/remove-model", [model], "the body must be a JSON object"],
    ["/api/rpc/mode", { mode: "distributed" }, "mode must be one of single, rpc"],
    ["/api/rpc/mode", { mode: "rpc" }, /^there are no workers/],
    ["/api/rpc/workers", {}, "one of workers and worker is needed"],
    ["/api/rpc/workers", { workers: [], worker: "a:1" }, /one of workers and worker is needed/],
    ["/api/rpc/workers", { workers: [] }, "workers must not be empty"],
    ["/api/rpc/workers", { workers: ["a:1", 5] }, "workers[1] must be a string"],
    ["/api/rpc/workers", { worker: "nowhere" }, /^"nowhere" is not of the form HOST:PORT/],
    ["/api/rpc/workers", { worker: "10.0.0.1:70000" }, /^"10.0.0.1:70000" is not of the form HOST:PORT/],
    ["/api/rpc/workers", { worker: "::1:50052" }, /^"::1:50052" is not of the form HOST:PORT, with an IPv4 address/],
    ["/api/rpc/workers/remove", { worker: "10.0.0.1:0" }, /^"10.0.0.1:0" is not of the form HOST:PORT/],
  ] as const) {
    const answer = await gateway.json(path, postWith(body));
    assert.deepEqual([answer.status, codeOf(answer)], [400, "invalid_request"], `${path} ${JSON.stringify(body)}`);
    if (typeof message === "string") assert.equal(messageOf(answer), message);
    else assert.match(messageOf(answer), message);
    assert.equal(typeof (answer.body["error"] as { hint: unknown }).hint, "string");
  }
  for (const path of posts) {
    const empty = await gateway.json(path, { method: "POST" });
    assert.deepEqual([empty.status, codeOf(empty)], [400, "invalid_request"], path);
    const broken = await gateway.json(path, { ...postWith({}), body: "{" });
    assert.deepEqual([broken.status, codeOf(broken)], [400, "invalid_request"], path);
    const page = { "content-type": "text/plain", origin: "http://localhost" };
    const form = await gateway.json(path, { ...postWith({}), headers: page });
    assert.deepEqual([form.status, codeOf(form)], [415, "unsupported_media_type"], path);
    const got = await gateway.json(path);
    assert.deepEqual([got.status, got.headers.get("allow")], [405, "POST"], path);
  }
  for (const path of posts.slice(0, 3)) {
    const unknown = await gateway.json(
      path,
      postWith({ model: "acme/alhpa:Q8_0", ...(path.includes("ctx") ? { ctx_size: 512 } : {}) }),
    );
    assert.deepEqual([unknown.status, codeOf(unknown)], [404, "model_not_found"], path);
    assert.match(messageOf(unknown), /did you mean acme\/alpha:Q8_0/);
  }
  assert.deepEqual((await gateway.json("/api/desired")).body, before.body);
});

test("the hub, for clients that have no access of their own", async (t) => {
  const hub = await startLoopbackHub(t, { tokens: ["the-token"] });
  const files = {
    "talk-Q4_K_M.gguf": Buffer.from("four"),
    "big/talk-Q8_0-00001-of-00002.gguf": Buffer.from("eight"),
    "big/talk-Q8_0-00002-of-00002.GGUF": Buffer.from("more of it"),
    "mmproj-F16.gguf": Buffer.from("eye"),
    "README.md": Buffer.from("read me"),
  };
  hub.addRepo("acme/talk-GGUF", { files, downloads: 10, likes: 3 });
  hub.addRepo("acme/talk-more-GGUF", { files, downloads: 20, likes: 1, card: { license: "mit" } });
  hub.addRepo("acme/talk-weights", { files: { "model.safetensors": Buffer.from("x") }, downloads: 99 });
  hub.addRepo("acme/secret-GGUF", { files, private: true });
  for (let index = 0; index < 25; index++) hub.addRepo(`many/m${index}-GGUF`, { files, downloads: index });
  const gateway = await startTestGateway(t, {
    yaml: "version: 1\n",
    environment: {
      HF_ENDPOINT: hub.endpoint,
      HF_TOKEN: "the-token",
      GATEWAY_LICENSE_KEY: "mgw-test-key-of-a-sufficient-length-0123456789",
    },
  });
  const asked = (): number => hub.requests.length;

  await t.test("interface 4, Hub search: GGUF repositories alone, reshaped, without a license key", async () => {
    const { status, body } = await gateway.json("/api/hf/search?q=talk");
    assert.equal(status, 200);
    assert.deepEqual(body, [
      { id: "acme/talk-more-GGUF", downloads: 20, likes: 1 },
      { id: "acme/talk-GGUF", downloads: 10, likes: 3 },
    ]);
    assert.deepEqual((await gateway.json("/api/hf/search?q=talk-m&license=true")).body, [
      { id: "acme/talk-more-GGUF", downloads: 20, likes: 1, license: "mit" },
    ]);
  });

  await t.test("without a word to look for: the most downloaded", async () => {
    for (const query of ["", "?q=", "?q=%20", "?limit=20"]) {
      const { status, body } = await gateway.json(`/api/hf/search${query}`);
      const found = body as unknown as { downloads: number }[];
      assert.deepEqual([status, found.length], [200, 20], query);
      assert.deepEqual(
        found.map(({ downloads }) => downloads),
        Array.from({ length: 25 }, (_, index) => index)
          .concat(10, 20)
          .toSorted((a, b) => b - a)
          .slice(0, 20),
      );
    }
    assert.ok(hub.requests.every(({ path }) => !path.includes("search=&")));
  });

  await t.test("interface 8, Hub search limit: 20 unless asked otherwise", async () => {
    const lengths = await Promise.all(
      ["q=many", "q=many&limit=3", "q=many&limit=100"].map(
        async (query) => ((await gateway.json(`/api/hf/search?${query}`)).body as unknown as unknown[]).length,
      ),
    );
    assert.deepEqual(lengths, [20, 3, 25]);
  });

  await t.test("interface 4, Repository files: every .gguf file with its size, unfiltered", async () => {
    const { status, body } = await gateway.json("/api/hf/repo-files?repo=acme/talk-GGUF");
    assert.equal(status, 200);
    assert.deepEqual(
      new Set((body as unknown as { path: string; size: number }[]).map(({ path, size }) => `${path} ${size}`)),
      new Set([
        "big/talk-Q8_0-00001-of-00002.gguf 5",
        "big/talk-Q8_0-00002-of-00002.GGUF 10",
        "mmproj-F16.gguf 3",
        "talk-Q4_K_M.gguf 4",
      ]),
    );
    // With the gateway's own token, which the client does not have.
    const secret = await gateway.json("/api/hf/repo-files?repo=acme/secret-GGUF");
    assert.equal((secret.body as unknown as unknown[]).length, 4);
    assert.ok(hub.requests.every(({ authorized }) => authorized));
  });

  await t.test("what cannot be asked is refused, and what the hub refuses keeps its code", async () => {
    const before = asked();
    for (const [path, message] of [
      [`/api/hf/search?q=${"x".repeat(201)}`, /200 characters/],
      ["/api/hf/search?q=a&limit=0", "limit must be >= 1"],
      ["/api/hf/search?q=a&limit=1001", "limit must be <= 1000"],
      ["/api/hf/search?q=a&limit=many", "limit must be an integer"],
      ["/api/hf/search?q=a&sort=likes", "unknown query parameter sort: q, limit, license are known here"],
      ["/api/hf/search?q=a&q=b", "q must be a string"],
      ["/api/hf/repo-files", "repo is missing"],
      ["/api/hf/repo-files?repo=talk", /OWNER\/NAME/],
      ["/api/hf/repo-files?repo=../secrets", /is not a repository/],
      ["/api/hf/repo-files?repo=a/b/c", /OWNER\/NAME/],
    ] as const) {
      const answer = await gateway.json(path);
      assert.deepEqual([answer.status, codeOf(answer)], [400, "invalid_request"], path);
      if (typeof message === "string") assert.equal(messageOf(answer), message);
      else assert.match(messageOf(answer), message);
    }
    assert.equal(asked(), before);
    const missing = await gateway.json("/api/hf/repo-files?repo=acme/none");
    assert.deepEqual([missing.status, codeOf(missing)], [404, "hub_not_found"]);
    hub.failNext({ status: 503 });
    const down = await gateway.json("/api/hf/repo-files?repo=acme/talk-more-GGUF");
    assert.deepEqual([down.status, codeOf(down)], [502, "hub_unreachable"]);
    // A failure is not remembered.
    assert.equal((await gateway.json("/api/hf/repo-files?repo=acme/talk-more-GGUF")).status, 200);
    hub.rateLimit({ seconds: 7 });
    const limited = await gateway.json("/api/hf/search?q=limited");
    assert.deepEqual([limited.status, codeOf(limited)], [429, "hub_rate_limited"]);
  });
});

test("interface 4, Status: connection check, RPC mode and roster; without a key only what a stranger may see", async (t) => {
  const key = "mgw-test-key-of-a-sufficient-length-0123456789";
  const gateway = await startTestGateway(t, {
    yaml: 'version: 1\nrpc: { mode: single, workers: ["127.0.0.1:50052"] }\n',
    environment: { GATEWAY_LICENSE_KEY: key },
  });
  await gateway.converged();
  const full = await gateway.json("/status", { headers: { authorization: `Bearer ${key}` } });
  const { mode, workers } = full.body["rpc"] as StatusReport["rpc"];
  const roster = { mode, workers: workers.map(({ address }) => address) };
  assert.deepEqual(
    [full.status, roster, (full.body["router"] as { connected: boolean }).connected, full.body["removals"]],
    [200, { mode: "single", workers: ["127.0.0.1:50052"] }, true, []],
  );
  const short = await gateway.json("/status");
  const { gateway: status } = gateway.gateway.status();
  assert.deepEqual(
    [short.status, short.body],
    [
      200,
      {
        gateway: { version: status.version, id: status.id, ready: true },
        router: { connected: true },
        rpc: { mode: "single" },
      },
    ],
  );
  assert.deepEqual((await gateway.json("/livez")).body, { status: "ok" });
  assert.equal((await gateway.json("/readyz")).status, 200);
  for (const path of ["/api/desired", "/api/plan", "/api/events", "/beta/v1/models"])
    assert.equal((await gateway.json(path)).status, 401, path);
  const refused = await gateway.json("/api/set-ctx-size", postWith({ model: "x", ctx_size: 1 }));
  assert.deepEqual([refused.status, codeOf(refused)], [401, "unauthorized"]);
});

test("aliases: resolved before short names, shown with their model, kept by edits elsewhere, unique", async (t) => {
  const folders = await makeFolders(t);
  const [alpha, beta] = [await cacheTalker(folders, "acme/alpha"), await cacheTalker(folders, "acme/beta")];
  const gateway = await startTestGateway(t, {
    folders,
    yaml: `version: 1\nmodels: [{ id: "${alpha}", aliases: [beta, "My-Model:latest"] }]\n`,
  });
  await gateway.converged();
  const ejected = async (model: string): Promise<unknown> =>
    (await gateway.json("/api/eject-model", postWith({ model }))).body["model"];
  for (const name of ["beta", "BETA", "my-model", "My-Model:latest", alpha])
    assert.equal(await ejected(name), alpha, name);
  for (const name of [beta, "ACME/beta", "acme/beta:q8_0"]) assert.equal(await ejected(name), beta, name);
  assert.equal(((await gateway.json("/beta/v1/models")).body["data"] as unknown[]).length, 2);

  const copy = (source: string, destination: string): Promise<Response> =>
    fetch(`${gateway.url}/alpha/api/copy`, postWith({ source, destination }));
  assert.equal((await copy(beta, "other")).status, 200);
  assert.equal(await ejected("other:latest"), beta);
  assert.equal((await copy("other", "beta")).status, 200);
  assert.equal(await ejected("beta"), beta);
  assert.deepEqual(((await gateway.json("/api/desired")).body["document"] as { models: unknown }).models, [
    { id: alpha, aliases: ["My-Model:latest"] },
    { id: beta, aliases: ["other", "beta"] },
  ]);
  assert.equal((await copy(beta, alpha)).status, 400);
  assert.equal((await copy(beta, "two words")).status, 400);
  assert.equal((await copy("acme/none", "x")).status, 404);

  // An edit of the file elsewhere.
  await gateway.writeConfig(
    `version: 1\nmodels: [{ id: "${alpha}", aliases: [beta, "My-Model:latest"], ctxSize: 512 }]\n`,
  );
  await gateway.until("applied", ({ generation, sync }) => generation === 4 && sync === "Synced");
  assert.equal(await ejected("beta"), beta);
  assert.equal(await ejected("my-model"), alpha);

  const remove = (model: string): Promise<Response> =>
    fetch(`${gateway.url}/alpha/api/delete`, { ...postWith({ model }), method: "DELETE" });
  assert.equal((await remove("OTHER")).status, 200);
  assert.equal((await gateway.json("/api/eject-model", postWith({ model: "other" }))).status, 404);
  assert.equal(await ejected(beta), beta);
  const twice = await gateway.json("/api/desired", patchWith({ models: { [alpha]: { aliases: ["beta"] } } }));
  assert.deepEqual([twice.status, codeOf(twice)], [400, "invalid_document"]);
  assert.match(messageOf(twice), /models\[1\]\.aliases\[0\]: beta is already a name of the model at index 0/);
});
