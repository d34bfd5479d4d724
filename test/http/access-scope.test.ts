// What a license key of scope `chat` may do, on every route that is served, and what a chat with it may set.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { addKey } from "../../src/keys/key-changes.ts";
import { keyFileName } from "../../src/keys/key-file.ts";
import { cacheTalker, makeFolders } from "../support/folders.ts";
import { startTestGateway } from "../support/gateway.ts";
import { answersOf } from "../support/models.ts";
import { codeOf, messageOf } from "../support/own-calls.ts";
import { chatWith, postWith } from "../support/requests.ts";
import { type ServedRoute, watchRoutes } from "../support/served-routes.ts";

const asking =
  "chat/completions completions embeddings responses messages messages/count_tokens rerank reranking".split(" ");
const engineOnly = "completion infill embedding tokenize detokenize apply-template".split(" ");

/** All that the scope opens; below, `{}` is any one part of a path. */
const forChat: ReadonlySet<string> = new Set([
  "GET /status",
  "GET /api/models/{}/ready",
  "GET /api/models/{}/{}/ready",
  ...["/beta/v1", "/v1", "/alpha/v1"].flatMap((prefix) => [
    ...asking.map((path) => `POST ${prefix}/${path}`),
    ...["models", "models/{}", "health"].map((path) => `GET ${prefix}/${path}`),
  ]),
  ...["/beta", ""].flatMap((prefix) => [
    ...[...asking.filter((path) => !path.startsWith("messages")), ...engineOnly].map(
      (path) => `POST ${prefix}/${path}`,
    ),
    ...["models", "health", "props"].map((path) => `GET ${prefix}/${path}`),
  ]),
  ...["/alpha/api", "/api"].flatMap((prefix) => [
    ...["chat", "generate", "show", "embed", "embeddings"].map((path) => `POST ${prefix}/${path}`),
    ...["tags", "ps", "version"].map((path) => `GET ${prefix}/${path}`),
  ]),
]);

function isForChat({ method, path, licenseKey }: ServedRoute): boolean {
  return licenseKey === "none" || forChat.has(`${method === "HEAD" ? "GET" : method} ${path}`);
}

/** The code in an error answer of any family; Ollama's has only a text. */
function codeIn(text: string): unknown {
  const { error } = JSON.parse(text) as { error: string | { code: string } };
  if (typeof error !== "string") return error.code;
  return error.endsWith("is beyond the scope of this license key, which is chat") ? "scope_missing" : error;
}

test("interface 5, Authentication: a key of scope chat lists and asks models, and reads the status; all else is 403", async (t) => {
  const folders = await makeFolders(t);
  const model = await cacheTalker(folders, "acme/alpha");
  const path = join(folders.stateDir, keyFileName);
  const create = async (scope: "all" | "chat"): Promise<Record<string, string>> => {
    const { key } = await addKey(path, { name: scope, scope, expiresAt: undefined, now: Date.now() });
    return { authorization: `Bearer ${key}` };
  };
  const [all, chat] = [await create("all"), await create("chat")];
  const routes = watchRoutes(t);
  const gateway = await startTestGateway(t, {
    folders,
    yaml: `version: 1\nmodels: [{ id: "${model}", ctxSize: 1024 }]\n`,
  });
  await gateway.converged();
  const as = (headers: Record<string, string>, init: RequestInit = {}): RequestInit => ({
    ...init,
    headers: { ...(init.headers as Record<string, string>), ...headers },
  });

  await t.test("on every served route, with a key of each scope", async () => {
    assert.ok(routes.length > 100, `${routes.length} routes are seen`);
    for (const route of routes) {
      const body = ["GET", "HEAD"].includes(route.method) ? {} : { body: "{}" };
      const headers = { "content-type": "application/json" };
      const ask = async (key: Record<string, string>): Promise<{ status: number; text: string }> => {
        const abort = new AbortController();
        const init = as(key, { method: route.method, headers, signal: abort.signal, ...body });
        const answer = await fetch(gateway.url + route.path.replaceAll("{}", "x"), init);
        // The stream of events has no end.
        const text = answer.ok ? "" : await answer.text();
        abort.abort();
        return { status: answer.status, text };
      };
      const what = `${route.method} ${route.path}`;
      const full = await ask(all);
      assert.ok(![401, 403].includes(full.status), `${what}: ${full.status} ${full.text}`);
      const narrow = await ask(chat);
      if (isForChat(route)) {
        assert.equal(narrow.status, full.status, `${what}: ${narrow.text}`);
      } else {
        assert.equal(narrow.status, 403, what);
        if (route.method !== "HEAD") assert.equal(codeIn(narrow.text), "scope_missing", `${what}: ${narrow.text}`);
      }
    }
    const served = new Set(routes.map((route) => `${route.method} ${route.path}`));
    assert.deepEqual(
      [...forChat].filter((route) => !served.has(route)),
      [],
    );
    assert.equal((await gateway.json("/v1/nothing", as(chat))).status, 404);
    assert.equal((await gateway.json("/status", as(chat, { method: "DELETE" }))).status, 405);
  });

  await t.test("the whole status, as with any key", async () => {
    const { body } = await gateway.json("/status", as(chat));
    assert.ok(JSON.stringify(body).includes(model));
  });

  await t.test("the better of two keys counts", async () => {
    const both = { ...chat, "x-license-key": (all["authorization"] ?? "").replace("Bearer ", "") };
    assert.equal((await gateway.json("/api/desired", as(both))).status, 200);
  });

  await t.test(
    "a chat is answered under the context size that is in force, and the model stays as it was",
    async () => {
      const { hello } = answersOf("acme/alpha");
      const before = (await gateway.json("/api/desired", as(all))).body;
      const compat = await gateway.json("/v1/chat/completions", as(chat, chatWith(model, "hi", { num_ctx: 512 })));
      assert.deepEqual([compat.status, compat.headers.get("x-context-size")], [200, "1024"]);
      const options = { stream: false, keep_alive: "1s", options: { num_ctx: 512 } };
      const native = await gateway.json("/api/chat", as(chat, chatWith(model, "hi", options)));
      assert.deepEqual([native.status, native.headers.get("x-context-size")], [200, "1024"]);
      for (const { body } of [compat, native]) assert.ok(JSON.stringify(body).includes(hello), JSON.stringify(body));
      // A load without a message; one of the tokens to embed has no model for it here.
      assert.equal((await gateway.json("/api/generate", as(chat, postWith({ model, ...options })))).status, 200);
      assert.deepEqual((await gateway.json("/api/desired", as(all))).body, before);
      const { models } = (await gateway.json("/api/ps", as(chat))).body as { models: { expires_at: string }[] };
      assert.ok(Date.parse(models[0]?.expires_at ?? "") > Date.now() + 60_000, JSON.stringify(models));
    },
  );

  await t.test("an unload by keep_alive is refused in each family's shape, and so is a pull", async () => {
    const unload = { stream: false, keep_alive: 0 };
    for (const path of ["/api/chat", "/alpha/api/chat", "/api/generate", "/alpha/api/generate"]) {
      for (const init of [chatWith(model, "hi", { ...unload, prompt: "hi" }), postWith({ model, ...unload })]) {
        const { status, body } = await gateway.json(path, as(chat, init));
        assert.deepEqual([status, typeof body["error"]], [403, "string"], path);
      }
    }
    const embed = await gateway.json("/api/embed", as(chat, postWith({ model, input: "hi", keep_alive: "0s" })));
    assert.equal(embed.status, 403);
    const compat = await gateway.json("/v1/chat/completions", as(chat, chatWith(model, "hi", unload)));
    assert.deepEqual([compat.status, codeOf(compat)], [403, "scope_missing"]);
    assert.match(messageOf(compat), /keep_alive/);
    const pull = await gateway.json("/api/pull", as(chat, postWith({ model: "acme/other-GGUF:Q8_0" })));
    assert.deepEqual([pull.status, typeof pull.body["error"]], [403, "string"]);
    const messages = await gateway.json("/v1/messages", as(chat, chatWith(model, "hi", { ...unload, max_tokens: 9 })));
    assert.equal((messages.body["error"] as { type: string }).type, "permission_error");
    const { data } = (await gateway.json("/v1/models", as(chat))).body as { data: { loaded: boolean }[] };
    assert.equal(data[0]?.loaded, true);
  });
});
