// An RPC worker whose packets vanish: no refusal, no end, only silence. Runs in network namespaces of its own.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { streamChat } from "../support/gateway.ts";
import { answersOf } from "../support/models.ts";
import { reachable, since, startRpcGateway } from "../support/rpc-gateway.ts";
import { startWorkers } from "../support/rpc-worker.ts";
import { makeSecondHost, whyNoSecondHost } from "../support/second-host.ts";

const isInside = process.env["TEST_IN_NAMESPACE"] === "1";
const reason = isInside ? null : whyNoSecondHost();

if (isInside) {
  test("a worker that is cut off in mid-answer", async (t) => {
    const host = await makeSecondHost(t);
    const [local] = await startWorkers(t, 1);
    assert.ok(local);
    const away = await host.startWorker();
    const gateway = await startRpcGateway(t, [local, { address: away }]);
    let cutAt = 0;
    let pieces = 0;
    const cut = await streamChat(gateway.url, gateway.model, "forever", () => {
      if (++pieces !== 5) return;
      cutAt = performance.now();
      host.cutOff();
    });
    const told = since(cutAt);
    assert.match(cut.error ?? "", /RPC worker 10\.77\.0\.2:50052 was lost.*ETIMEDOUT/);
    assert.equal(await gateway.ask(gateway.model), answersOf("acme/talker").hello);
    t.diagnostic(`client told after ${told}, next answer after ${since(cutAt)}`);
    assert.deepEqual(await gateway.inPreset(), [local.address]);
    host.reconnect();
    const backAt = performance.now();
    await gateway.until("back", (status) => reachable(status)[1] === "True Answering");
    await gateway.converged();
    t.diagnostic(`taken back after ${since(backAt)} (1 s of answering asked)`);
    assert.equal(await gateway.ask(gateway.model), answersOf("acme/talker").hello);
  });
} else {
  test("a worker that is cut off in mid-answer", { skip: reason ?? false }, async (t) => {
    const inside = await promisify(execFile)(
      "unshare",
      ["-Urn", process.execPath, "--enable-source-maps", fileURLToPath(import.meta.url)],
      { env: { ...process.env, TEST_IN_NAMESPACE: "1", NODE_TEST_CONTEXT: undefined }, timeout: 600_000 },
    ).catch((error: { stdout?: string }) => assert.fail(error.stdout ?? "it did not run"));
    for (const [, line] of inside.stdout.matchAll(/^(?:#|ℹ) (.* after .*)$/gm)) t.diagnostic(line ?? "");
    assert.match(inside.stdout, /pass 1\b/);
  });
}
