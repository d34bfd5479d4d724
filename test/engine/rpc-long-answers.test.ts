// Answers on RPC workers that are silent for longer than a hang may last: nothing of that is one.
import assert from "node:assert/strict";
import { test } from "node:test";
import { chatWith, streamChat } from "../support/gateway.ts";
import { answersOf } from "../support/models.ts";
import { since, startRpcGateway } from "../support/rpc-gateway.ts";
import { startWorkers } from "../support/rpc-worker.ts";

test("an answer that is sent whole, and a queue deeper than the slots, outlast --worker-stall", async (t) => {
  const workers = await startWorkers(t, 2);
  // One slot: of these answers one is computed at a time.
  const gateway = await startRpcGateway(t, workers, { flags: ["--worker-stall", "0.5"], preset: ", parallel: 1" });
  const { long } = answersOf("acme/talker");
  assert.equal(await gateway.ask(gateway.model), answersOf("acme/talker").hello);
  const startedAt = performance.now();
  const chat = chatWith(gateway.model, "forever", { max_tokens: 300 });
  const whole = gateway.json("/beta/v1/chat/completions", chat).then(({ status, body }) => {
    assert.equal(status, 200, JSON.stringify(body));
    t.diagnostic(`sent whole after ${since(startedAt)} (0.5 s of silence allowed)`);
    assert.ok(performance.now() - startedAt > 600, "too quick to show anything");
    return (body["usage"] as { completion_tokens: number }).completion_tokens;
  });
  const stream = streamChat(gateway.url, gateway.model, "long");
  assert.equal(await whole, 300);
  assert.deepEqual(await stream, { text: long, done: true, error: null });
  t.diagnostic(`all through after ${since(startedAt)}`);
});
