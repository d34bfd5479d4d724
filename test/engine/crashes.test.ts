// What dies comes back by itself; what cannot work is said. A router that hangs: quiet-changes and faults/hung-processes.
import assert from "node:assert/strict";
import { test } from "node:test";
import { cacheTalker, makeFolders } from "../support/folders.ts";
import { startTestGateway } from "../support/gateway.ts";
import { answersOf } from "../support/models.ts";
import { childrenOf } from "../support/processes.ts";

test("a model's process that lost its listener but lives is replaced", async (t) => {
  const folders = await makeFolders(t);
  const alpha = await cacheTalker(folders, "acme/alpha");
  const gateway = await startTestGateway(t, { folders, yaml: "version: 1\n", flags: ["--silence-limit", "1"] });
  const { router } = await gateway.converged();
  await gateway.ask(alpha);
  const [child] = await childrenOf(router.pid ?? 0);
  process.kill(child ?? 0, "SIGTERM");
  assert.equal(await gateway.ask(alpha), answersOf("acme/alpha").hello);
});

test("a missing engine is said with what to do, and everything else works", async (t) => {
  const folders = await makeFolders(t);
  const gateway = await startTestGateway(t, {
    folders,
    yaml: "version: 1\n",
    flags: ["--llama-server", "/nowhere/llama-server"],
  });
  const status = await gateway.until("said", (now) =>
    now.conditions.some((condition) => condition.type === "RouterReady" && condition.reason === "EngineMissing"),
  );
  assert.match(
    status.conditions.find((entry) => entry.type === "RouterReady")?.message ?? "",
    /Run `node \S+ engine install llama --state \S+`, or name one with --llama-server\.$/,
  );
  assert.equal((await gateway.json("/api/desired")).status, 200);
  assert.equal((await gateway.json("/livez")).status, 200);
});

test("a crashing engine is started more and more slowly, not in a busy loop", async (t) => {
  const folders = await makeFolders(t);
  const gateway = await startTestGateway(t, { folders, yaml: "version: 1\n" });
  let { pid } = (await gateway.converged()).router;
  const waits: number[] = [];
  for (let round = 0; round < 3; round++) {
    const killedAt = performance.now();
    process.kill(pid ?? 0, "SIGKILL");
    const before = pid;
    pid = (await gateway.until("restarted", (status) => status.router.connected && status.router.pid !== before)).router
      .pid;
    waits.push(performance.now() - killedAt);
  }
  // Each start takes as long as the machine does; the waits before it are 0, 1 and 2 s.
  assert.ok((waits[1] ?? 0) >= 900 && (waits[2] ?? 0) >= 1900, waits.join(", "));
});
