// Workers that answer and cannot be used: without a device; and one of another version. Models run
// with the rest.
import assert from "node:assert/strict";
import { test } from "node:test";
import { answersOf } from "../support/models.ts";
import { postWith } from "../support/requests.ts";
import { reachable, startRpcGateway } from "../support/rpc-gateway.ts";
import { startWorkers } from "../support/rpc-worker.ts";
import { startPeer, startPolitePeer } from "../support/worker-peer.ts";

test("they are left out, and each is told what is the matter with it", async (t) => {
  const [worker] = await startWorkers(t, 1);
  assert.ok(worker);
  const empty = await startPolitePeer(t, { devices: 0 });
  const stranger = await startPeer(t, (socket) => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"));
  const gateway = await startRpcGateway(t, [worker, empty, stranger], {
    rest: ", minWorkers: 1",
    answering: 1,
  });
  assert.deepEqual(reachable(gateway.gateway.status()), ["True Answering", "False NoDevices", "False NotAWorker"]);
  assert.deepEqual(await gateway.inPreset(), [worker.address]);
  assert.equal(await gateway.ask(gateway.model), answersOf("acme/talker").hello);
});

test("two names of one worker are no two workers for minWorkers", async (t) => {
  const [worker] = await startWorkers(t, 1);
  assert.ok(worker);
  const double = { address: worker.address.replace("127.0.0.1", "localhost") };
  const gateway = await startRpcGateway(t, [worker, double], { rest: ", minWorkers: 2" });
  const { body, status } = await gateway.json(
    "/beta/v1/chat/completions",
    postWith({ model: gateway.model, messages: [{ role: "user", content: "hi" }] }),
  );
  assert.deepEqual([status, (body["error"] as { code: string }).code], [503, "too_few_workers"]);
});

test("minWorkers raised under a loaded model: it goes on, and that is said", async (t) => {
  const workers = await startWorkers(t, 1);
  const gateway = await startRpcGateway(t, workers);
  assert.equal(await gateway.ask(gateway.model), answersOf("acme/talker").hello);
  await gateway.json("/api/desired", { ...postWith({ rpc: { minWorkers: 3 } }), method: "PATCH" });
  const status = await gateway.until("too few", ({ conditions }) =>
    conditions.some(({ reason }) => reason === "TooFewWorkers"),
  );
  const { message } = status.conditions.find(({ type }) => type === "WorkersReady") ?? { message: "" };
  assert.match(
    message,
    /asks for 3: no other model than acme\/talker:Q8_0 is loaded; the document names only 1\. Start workers/,
  );
  assert.equal(await gateway.ask(gateway.model), answersOf("acme/talker").hello);
});

test("a roster call answers when everybody was looked at, and says who cannot be used", async (t) => {
  const [worker] = await startWorkers(t, 1);
  assert.ok(worker);
  const stranger = await startPeer(t, (socket) => socket.end("SSH-2.0-x\r\n"));
  const gateway = await startRpcGateway(t, [worker]);
  const { status, body } = await gateway.json(
    "/api/rpc/workers",
    postWith({ workers: [stranger.address, "no-such-host.invalid:50061"] }),
  );
  assert.deepEqual([status, body["ok"], body["mode"]], [200, true, "rpc"]);
  assert.deepEqual(body["workers"], [worker.address, stranger.address, "no-such-host.invalid:50061"]);
  assert.deepEqual(
    (body["notInUse"] as { address: string; reason: string }[]).map(({ address, reason }) => [address, reason]),
    [
      [stranger.address, "NotAWorker"],
      ["no-such-host.invalid:50061", "Unresolvable"],
    ],
  );
  const left = await gateway.json(
    "/api/rpc/workers/remove",
    postWith({ workers: [stranger.address, "no-such-host.invalid:50061"] }),
  );
  assert.deepEqual([left.body["workers"], left.body["notInUse"]], [[worker.address], []]);
});

test("a load that fails although all answer names the workers, with their versions", async (t) => {
  const pretender = await startPolitePeer(t, { version: [99, 1, 1] });
  const gateway = await startRpcGateway(t, [pretender], { flags: ["--worker-stall", "2"] });
  assert.deepEqual(reachable(gateway.gateway.status()), ["True Answering"]);
  const { status, body } = await gateway.json(
    "/beta/v1/chat/completions",
    postWith({ model: gateway.model, messages: [{ role: "user", content: "hi" }] }),
  );
  assert.equal(status, 500);
  assert.match(
    JSON.stringify(body),
    new RegExp(`could not be loaded.*RPC workers: ${pretender.address} \\(version 99\\.1\\.1\\)`),
  );
});
