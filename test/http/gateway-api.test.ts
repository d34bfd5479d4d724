// The gateway's own routes and what they refuse, on a running gateway.
import assert from "node:assert/strict";
import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { test } from "node:test";
import { cacheTalker, makeFolders } from "../support/folders.ts";
import { startTestGateway, type TestGateway } from "../support/gateway.ts";

interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

function send(method: string, body: unknown, headers: Record<string, string> = {}): RequestInit {
  return {
    method,
    headers: { "content-type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  };
}

/** With a Host header of our choice, which fetch does not allow. */
function rawGet(gateway: TestGateway, path: string, headers: Record<string, string>): Promise<Answer> {
  return new Promise((resolve, reject) => {
    request(gateway.url + path, { headers }, (response) => {
      let text = "";
      response.on("data", (chunk: Buffer) => {
        text += chunk.toString();
      });
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, body: JSON.parse(text) as Record<string, unknown> }),
      );
    })
      .on("error", reject)
      .end();
  });
}

function errorOf({ body }: { readonly body: Record<string, unknown> }): {
  code?: string;
  message?: string;
  hint?: string;
} {
  return body["error"] as object;
}

test("the document over HTTP", async (t) => {
  const folders = await makeFolders(t);
  const model = await cacheTalker(folders, "acme/alpha");
  const gateway = await startTestGateway(t, { folders, yaml: `# mine\nversion: 1\nmodels: ["${model}"]\n` });
  await gateway.converged();

  await t.test("GET has an ETag; a change moves it, an equal document does not", async () => {
    const first = await gateway.json("/api/desired");
    const etag = first.headers.get("etag") ?? "";
    assert.deepEqual(first.body["document"], { version: 1, models: [model] });
    const same = await gateway.json("/api/desired", send("PUT", first.body["document"]));
    assert.deepEqual(
      [same.status, same.headers.get("etag"), same.body["generation"]],
      [200, etag, first.body["generation"]],
    );
    const changed = await gateway.json(
      "/api/desired",
      send("PATCH", { context: { default: 2048 } }, { "if-match": etag }),
    );
    assert.equal(changed.status, 200);
    assert.notEqual(changed.headers.get("etag"), etag);
    const stale = await gateway.json(
      "/api/desired",
      send("PATCH", { context: { default: 4096 } }, { "if-match": etag }),
    );
    assert.deepEqual([stale.status, errorOf(stale).code], [412, "precondition_failed"]);
    assert.deepEqual((await gateway.json("/api/desired")).body["document"], {
      version: 1,
      models: [model],
      context: { default: 2048 },
    });
  });

  await t.test("GET shows who set what differs from the file", async () => {
    const { body } = await gateway.json("/api/desired");
    const [difference] = body["differsFromFile"] as { path: string; setBy: string; desired: unknown; file: unknown }[];
    assert.deepEqual(
      [difference?.path, difference?.file, difference?.desired, difference?.setBy],
      ["context", null, { default: 2048 }, "http:PATCH /api/desired"],
    );
  });

  await t.test("an edit of the file elsewhere keeps what the API set; of two on one key the later wins", async () => {
    await gateway.writeConfig(`version: 1\nsuspend: false\nmodels: [{ id: "${model}", ctxSize: 512 }]\n`);
    await gateway.until("applied", (status) => status.generation === 3 && status.sync === "Synced");
    assert.deepEqual((await gateway.json("/api/desired")).body["document"], {
      version: 1,
      models: [{ id: model, ctxSize: 512 }],
      context: { default: 2048 },
      suspend: false,
    });
    await gateway.json("/api/desired", send("PATCH", { models: { [model]: { ctxSize: 768 } } }));
    await gateway.writeConfig(`version: 1\nsuspend: false\nmodels: [{ id: "${model}", ctxSize: 1024 }]\n`);
    await gateway.until("applied", (status) => status.generation === 5 && status.sync === "Synced");
    const { body } = await gateway.json("/beta/v1/models");
    assert.equal((body["data"] as { context_length: number }[])[0]?.context_length, 1024);
  });

  await t.test("?dryRun=true answers with the plan and changes nothing", async () => {
    const before = await gateway.json("/api/desired");
    const { status, body } = await gateway.json(
      "/api/desired?dryRun=true",
      send("PATCH", { models: { [model]: { ctxSize: 256 }, "acme/new:Q8_0": {} } }),
    );
    assert.equal(status, 200);
    assert.deepEqual(
      (body["actions"] as { kind: string }[]).map((action) => action.kind),
      ["model.pull", "preset.write"],
    );
    assert.deepEqual((await gateway.json("/api/desired")).body, before.body);
  });

  await t.test("an invalid document is refused whole, with every problem", async () => {
    const before = await gateway.json("/api/desired");
    const answer = await gateway.json(
      "/api/desired",
      send("PUT", { version: 1, modles: [], models: ["nonsense", { id: model, ctxSize: -1 }] }),
    );
    assert.equal(answer.status, 400);
    assert.equal(errorOf(answer).code, "invalid_document");
    for (const part of ["modles", "models[0]", "models[1].ctxSize"])
      assert.ok(errorOf(answer).message?.includes(part), part);
    assert.equal((await gateway.json("/api/desired", send("PUT", "{ broken"))).status, 400);
    assert.equal((await gateway.json("/api/desired", send("PUT", "[]"))).status, 400);
    assert.equal(
      (await gateway.json("/api/desired", { method: "PUT", headers: { "content-type": "text/plain" }, body: "{}" }))
        .status,
      400,
    );
    assert.equal((await gateway.json("/api/desired?wait=true&timeout=never", send("PATCH", {}))).status, 400);
    assert.deepEqual((await gateway.json("/api/desired")).body["document"], before.body["document"]);
  });

  await t.test("a broken, a missing and a mended file", async () => {
    const good = await readFile(folders.configPath, "utf8");
    await gateway.writeConfig("version: 1\nmodels: [oops\n");
    const broken = await gateway.until("said", (status) =>
      status.conditions.some((entry) => entry.reason === "ParseError"),
    );
    assert.match(
      broken.conditions.find((entry) => entry.type === "SourceValid")?.message ?? "",
      /gateway\.yaml:\d+:\d+: /,
    );
    assert.equal(broken.conditions.find((entry) => entry.type === "Ready")?.status, "True");
    assert.equal((await gateway.json("/beta/v1/models")).status, 200);
    await rm(folders.configPath);
    await gateway.until("said", (status) => status.conditions.some((entry) => entry.reason === "FileMissing"));
    await writeFile(`${folders.configPath}.new`, good);
    await rename(`${folders.configPath}.new`, folders.configPath);
    const mended = await gateway.until("mended", (status) => status.source.valid);
    assert.equal(mended.generation, broken.generation);
  });
});

test("status, plan, health, events, and what is refused", async (t) => {
  const folders = await makeFolders(t);
  const model = await cacheTalker(folders, "acme/alpha");
  const gateway = await startTestGateway(t, { folders, yaml: `version: 1\nmodels: ["${model}"]\n` });
  await gateway.converged();

  await t.test("health and plan", async () => {
    assert.deepEqual((await gateway.json("/livez")).body, { status: "ok" });
    assert.equal((await gateway.json("/readyz")).status, 200);
    assert.equal((await gateway.json("/api/plan")).body["converged"], true);
    const { body } = await gateway.json("/status");
    assert.deepEqual(
      [body["sync"], body["health"], (body["rpc"] as { mode: string }).mode],
      ["Synced", "Healthy", "single"],
    );
  });

  await t.test("events tell what a change set off, and can be taken up again", async () => {
    const following = new AbortController();
    const response = await fetch(`${gateway.url}/api/events`, { signal: following.signal });
    assert.equal(response.headers.get("content-type"), "text/event-stream; charset=utf-8");
    await gateway.json("/api/desired?wait=true", send("PATCH", { models: { [model]: { ctxSize: 1024 } } }));
    let text = "";
    for await (const chunk of response.body ?? []) {
      text += Buffer.from(chunk).toString();
      if (text.includes('"kind":"router.reload"') && text.includes("event: action.finished")) break;
    }
    following.abort();
    const ids = [...text.matchAll(/^id: ([0-9a-f]{8}-\d+)$/gm)].map(([, id]) => id ?? "");
    const [epoch = "", first = 0] = (ids[0] ?? "").split("-");
    assert.deepEqual(
      ids,
      ids.map((_, index) => `${epoch}-${Number(first) + index}`),
    );
    const again = new AbortController();
    const replay = await fetch(`${gateway.url}/api/events`, {
      signal: again.signal,
      headers: { "last-event-id": `${epoch}-${Number(first) - 1}` },
    });
    let replayed = "";
    for await (const chunk of replay.body ?? []) {
      replayed += Buffer.from(chunk).toString();
      if (replayed.includes(`id: ${ids.at(-1) ?? ""}\n`)) break;
    }
    again.abort();
    assert.match(replayed, new RegExp(`^id: ${ids[0] ?? ""}$`, "m"));
    assert.ok(!replayed.includes("event: reset"), replayed);
  });

  await t.test("unknown paths and wrong methods, in each family's shape", async () => {
    const own = await gateway.json("/nothing/here");
    assert.deepEqual([own.status, errorOf(own).code], [404, "not_found"]);
    assert.equal((await gateway.json("/api/desired/here")).status, 404);
    const compat = await gateway.json("/beta/v1/nothing");
    assert.deepEqual([compat.status, errorOf(compat).code], [404, "not_found"]);
    const native = await gateway.json("/alpha/api/nothing");
    assert.deepEqual([native.status, typeof native.body["error"]], [404, "string"]);
    const wrong = await gateway.json("/status", { method: "DELETE" });
    assert.deepEqual(
      [wrong.status, wrong.headers.get("allow"), errorOf(wrong).code],
      [405, "GET, HEAD", "method_not_allowed"],
    );
    assert.equal((await gateway.json("/beta/v1/chat/completions")).status, 405);
  });

  await t.test("bodies that are none", async () => {
    const bad = await gateway.json("/beta/v1/chat/completions", send("POST", '{"model": "x", "messages": ['));
    assert.deepEqual([bad.status, errorOf(bad).code], [400, "invalid_request"]);
    assert.match(errorOf(bad).message ?? "", /line 1, column 29\b/);
    assert.equal((await gateway.json("/beta/v1/chat/completions", send("POST", ""))).status, 400);
    assert.equal((await gateway.json("/beta/v1/chat/completions", send("POST", { messages: [] }))).status, 400);
    assert.equal(
      (
        await gateway.json("/beta/v1/chat/completions", {
          method: "POST",
          headers: { "content-type": "text/plain" },
          body: "hi",
        })
      ).status,
      400,
    );
    const native = await gateway.json("/alpha/api/chat", send("POST", "nope"));
    assert.deepEqual(
      [native.status, native.body["error"]],
      [400, 'the body is no JSON: line 1, column 1: unexpected "n"'],
    );
    const own = await gateway.json("/api/desired", send("PUT", '{\n  "version": 1,\n  "models": [secret]\n}'));
    assert.deepEqual(
      [own.status, errorOf(own).code, errorOf(own).message],
      [400, "invalid_request", 'the body is no JSON: line 3, column 14: unexpected "s"'],
    );
    assert.equal((await gateway.json("/api/desired", send("PUT", ""))).status, 400);
    const marked = await gateway.json("/api/desired?dryRun=true", send("PATCH", "\uFEFF{}"));
    assert.equal(marked.status, 200, "a byte order mark is none of the body's");
  });

  await t.test("bodies of another type: taken as JSON, but for what a page sends", async () => {
    const typed = async (
      path: string,
      type: string | null,
      origin = "http://localhost",
    ): Promise<readonly [number, string | undefined]> => {
      const headers = { ...(type === null ? {} : { "content-type": type }), ...(origin === "" ? {} : { origin }) };
      const method = path === "/api/desired?dryRun=true" ? "PATCH" : "POST";
      // Of text, fetch would name a type by itself.
      const answer = await gateway.json(path, { method, headers, body: Buffer.from("{}") });
      return [answer.status, (answer.body["error"] as { message?: string } | undefined)?.message];
    };
    const [trial, chat] = ["/api/desired?dryRun=true", "/v1/chat/completions"];
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "nonsense", null]) {
      assert.deepEqual(await typed(trial, type, ""), [200, undefined], String(type));
      assert.deepEqual(await typed(chat, type, ""), [400, "model is missing or no string"], String(type));
    }
    const own = "application/json or application/merge-patch+json is expected";
    assert.deepEqual(await typed(trial, "text/plain"), [415, `the body is "text/plain": ${own}`]);
    assert.deepEqual(await typed(trial, "nonsense"), [415, `the body is "nonsense": ${own}`]);
    assert.deepEqual(await typed(trial, null), [415, `the body has no Content-Type: ${own}`]);
    assert.deepEqual(await typed(trial, "application/json"), [200, undefined]);
    assert.deepEqual(await typed(chat, "application/x-www-form-urlencoded"), [
      415,
      'the body is "application/x-www-form-urlencoded": application/json is expected',
    ]);
    // Ollama's clients send JSON under any type, or none.
    for (const type of ["text/plain", "application/x-www-form-urlencoded", null])
      assert.equal((await typed("/alpha/api/show", type))[0], 400);
  });

  await t.test("other hosts and other origins", async () => {
    const rebound = await rawGet(gateway, "/status", { host: "evil.example" });
    assert.deepEqual([rebound.status, errorOf(rebound).code], [403, "forbidden_origin"]);
    const crossSite = await gateway.json(
      "/api/desired",
      send("PATCH", { prune: true }, { origin: "https://evil.example" }),
    );
    assert.equal(crossSite.status, 403);
    assert.equal((await gateway.json("/status", { headers: { origin: "http://localhost:3000" } })).status, 200);
    assert.equal((await rawGet(gateway, "/status", { host: `localhost:${new URL(gateway.url).port}` })).status, 200);
  });
});

test("a body over the limit", async (t) => {
  const gateway = await startTestGateway(t, { yaml: "version: 1\n", flags: ["--body-limit", "2000"] });
  const { status, body } = await gateway.json(
    "/beta/v1/chat/completions",
    send("POST", { model: "x", messages: [{ role: "user", content: "y".repeat(3000) }] }),
  );
  assert.deepEqual([status, (body["error"] as { code: string }).code], [413, "body_too_large"]);
});

test("a body that is nested without end is the sender's fault", async (t) => {
  const gateway = await startTestGateway(t, { yaml: "version: 1\n" });
  const deep = `{"models":${'{"a":'.repeat(30_000)}1${"}".repeat(30_001)}`;
  const { status, body } = await gateway.json("/api/desired", send("PATCH", deep));
  assert.deepEqual([status, (body["error"] as { code: string }).code], [400, "invalid_request"]);
});
