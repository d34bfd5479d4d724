// Which model a line of the router's output is of, by lines of llama.cpp 0.7.0.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createRouterLines } from "../../../../src/engines/llama/router-lines.ts";

const alpha = "0.00.267.126 I srv          load: spawning server instance with name=acme/alpha:Q8_0 on port 46455";
const beta = "0.00.384.105 I srv          load: spawning server instance with name=acme/beta:Q8_0 on port 46911";

test("an instance's lines are told by the port of its start; all others are the router's", () => {
  const lines = createRouterLines();
  for (const line of [alpha, beta, "0.00.267.184 I srv          load:   --host", "", "[", "[46455", "[1] odd"])
    assert.deepEqual(lines(line), { log: "router", line });
  assert.deepEqual(lines("[46455] 0.00.054.210 I srv    load_model: loading model"), {
    log: "acme/alpha:Q8_0",
    line: "0.00.054.210 I srv    load_model: loading model",
  });
  assert.deepEqual(lines("[46911] [46455] text"), { log: "acme/beta:Q8_0", line: "[46455] text" });
  assert.deepEqual(lines("[46999] text"), { log: "router", line: "[46999] text" });
});

test("a port goes to the model that was started with it last", () => {
  const lines = createRouterLines();
  lines(alpha);
  lines(alpha.replace("alpha", "gamma"));
  assert.equal(lines("[46455] text").log, "acme/gamma:Q8_0");
});

test("what an instance prints names no model", () => {
  const lines = createRouterLines();
  lines(alpha);
  lines(`[46455] ${beta}`);
  assert.equal(lines("[46911] text").log, "router");
});
