// A stream whose model is long in loading: its client hears of it before it gives up, and an error still reaches it.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import Fastify from "fastify";
import { GatewayError } from "../../src/core/errors.ts";
import type { SizedLease } from "../../src/http/chat-context.ts";
import type { CompatRoutesDeps } from "../../src/http/compat/routes.ts";
import { compatRoutes } from "../../src/http/compat/routes.ts";
import type { AnswerSink } from "../../src/http/upstream.ts";
import { cleanUp } from "../support/clean-up.ts";

const chunk = 'data: {"choices":[]}\n\ndata: [DONE]\n\n';

interface Setting {
  readonly url: string;
  /** A request waits for the model. */
  readonly waiting: Promise<void>;
  /** The model is loaded, or will never be. */
  loaded(outcome: "loaded" | GatewayError): void;
}

/** Loading takes until the test says so; the engine then answers at once. */
async function start(t: TestContext): Promise<Setting> {
  let loaded: Setting["loaded"] = () => undefined;
  const { promise: waiting, resolve: waits } = withResolvers();
  const instance = {
    id: "a",
    origin: "",
    key: "",
    ctxSize: null,
    nCtx: null,
    pid: null,
    workers: [],
    retain: () => () => undefined,
  };
  const deps = {
    catalogue: { resolve: () => ({ id: "acme/a:Q8_0", upstreamId: "acme/a:Q8_0" }) },
    idle: { keep: () => undefined },
    chatContext: {
      acquire: () =>
        new Promise<SizedLease>((resolve, reject) => {
          waits();
          loaded = (outcome) =>
            outcome === "loaded"
              ? resolve({ instance, contextSize: null, overdue: () => null, release: () => undefined })
              : reject(outcome);
        }),
    },
    upstream: {
      send: (_instance: unknown, { stream }: { stream: boolean }, sink: AnswerSink) => {
        queueMicrotask(() => {
          sink.start(200, { "content-type": stream ? "text/event-stream" : "application/json" });
          sink.data(Buffer.from(stream ? chunk : '{"choices":[]}'));
          sink.end();
        });
        return { resume: () => undefined, abort: () => undefined };
      },
    },
    cutOff: new AbortController().signal,
    onFailure: () => undefined,
    tickMs: 5,
  } as unknown as CompatRoutesDeps;
  const app = Fastify();
  compatRoutes(app, deps);
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  cleanUp(t, () => app.close());
  return { url, waiting, loaded: (outcome) => loaded(outcome) };
}

function withResolvers(): { promise: Promise<void>; resolve: () => void } {
  let resolve: () => void = () => undefined;
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

function ask({ url }: Setting, stream: boolean): Promise<Response> {
  return fetch(`${url}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "a", messages: [], stream }),
  });
}

test("headers and comments come while the model loads, then the stream as it is", async (t) => {
  const setting = await start(t);
  // Resolves with the headers, though nothing is loaded.
  const response = await ask(setting, true);
  assert.equal(response.status, 200);
  assert.match(response.headers.get("content-type") ?? "", /^text\/event-stream/);
  setting.loaded("loaded");
  assert.match(await response.text(), /^(: waiting\n\n)+data: \{"choices":\[\]\}\n\ndata: \[DONE\]\n\n$/);
});

test("a load that fails after that ends the stream in an error frame", async (t) => {
  const setting = await start(t);
  const response = await ask(setting, true);
  setting.loaded(new GatewayError("model_load_failed", "no memory"));
  const text = await response.text();
  assert.match(text, /^(: waiting\n\n)+data: \{"error":\{"message":"no memory".*"code":"model_load_failed"\}\}\n\n$/);
});

test("an answer that is no stream keeps its status for the end", async (t) => {
  const setting = await start(t);
  t.mock.timers.enable({ apis: ["setInterval"] });
  const asked = ask(setting, false);
  await setting.waiting;
  t.mock.timers.tick(60_000);
  setting.loaded(new GatewayError("model_load_failed", "no memory"));
  assert.equal((await asked).status, 500);
});
