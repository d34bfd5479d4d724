// A fault of ours at the end of an answer: its client is told, and nothing else ends with it.
import assert from "node:assert/strict";
import { test } from "node:test";
import Fastify from "fastify";
import type { GatewayError } from "../../../../src/core/errors.ts";
import { passThrough } from "../../../../src/http/openai/pass-through.ts";
import { runGeneration } from "../../../../src/http/proxy/exchange.ts";
import type { CachedModel } from "../../../../src/plan/observed.ts";
import { cleanUp } from "../../../support/clean-up.ts";
import { loadingModel } from "../../../support/loading-model.ts";

test("a translator that throws at the end is an error in the response", async (t) => {
  const { deps, loaded } = loadingModel(() => "{}");
  loaded("loaded");
  const failures: GatewayError[] = [];
  const app = Fastify();
  cleanUp(t, () => app.close());
  app.get("/", (_request, reply) => {
    reply.hijack();
    const translator = passThrough("done");
    translator.end = () => {
      throw new RangeError("Maximum call stack size exceeded");
    };
    runGeneration({ ...deps, onFailure: (error) => failures.push(error) }, reply.raw, {
      model: { id: "acme/a:Q8_0", upstreamId: "acme/a:Q8_0" } as CachedModel,
      path: "/v1/chat/completions",
      route: "/chat/completions",
      body: [Buffer.from("{}")],
      stream: false,
      translator,
    });
  });
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  const response = await fetch(url);
  assert.equal(response.status, 500);
  assert.match(await response.text(), /"error":/);
  assert.equal(failures.length, 1);
  assert.deepEqual(deps.inFlight.list(), []);
});
