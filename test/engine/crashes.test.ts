// What dies comes back by itself; what cannot work is said.
import assert from "node:assert/strict";
import { chmod, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { llamaServer } from "../support/engine.ts";
import {
  cacheModel,
  cacheTalker,
  makeFolders,
  makeTalkerFolders,
  startTestGateway,
  streamChat,
} from "../support/gateway.ts";
import { answersOf } from "../support/models.ts";
import { childrenOf } from "../support/processes.ts";

test("a model's process that is killed in mid-answer ends the stream in an error frame, and the next request is served", async (t) => {
  const folders = await makeTalkerFolders(t);
  const gateway = await startTestGateway(t, { folders });
  const { router } = await gateway.converged();
  let pieces = 0;
  const stream = await streamChat(gateway.url, "acme/talker:Q8_0", "forever", () => {
    if (++pieces !== 5) return;
    void childrenOf(router.pid ?? 0).then((pids) => {
      for (const pid of pids) process.kill(pid, "SIGKILL");
    });
  });
  assert.equal(stream.done, false);
  assert.match(stream.error ?? "", /^the engine broke off in the middle of the answer$/);
  assert.equal(await gateway.ask("acme/talker:Q8_0"), answersOf("talker").hello);
  assert.equal(gateway.gateway.status().router.pid, router.pid);
});

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

test("a router that hangs is restarted", async (t) => {
  const folders = await makeFolders(t);
  const alpha = await cacheTalker(folders, "acme/alpha");
  const gateway = await startTestGateway(t, {
    folders,
    yaml: "version: 1\n",
    flags: ["--silence-limit", "1", "--resync", "0.2", "--stop-grace", "0.5"],
  });
  const { router } = await gateway.converged();
  process.kill(router.pid ?? 0, "SIGSTOP");
  await gateway.until(
    "another router",
    (status) => status.router.pid !== null && status.router.pid !== router.pid && status.sync === "Synced",
    30_000,
  );
  assert.equal(await gateway.ask(alpha), answersOf("acme/alpha").hello);
});

test("a file that is no model fails with the reason, and the others are served", async (t) => {
  const folders = await makeFolders(t);
  const alpha = await cacheTalker(folders, "acme/alpha");
  await cacheModel(folders, "acme/broken", "broken-Q8_0.gguf", Buffer.from("this is no GGUF file at all"));
  const gateway = await startTestGateway(t, { folders, yaml: "version: 1\n" });
  await gateway.converged();
  const { status, body } = await gateway.json("/beta/v1/chat/completions", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "acme/broken:Q8_0", messages: [{ role: "user", content: "hi" }] }),
  });
  assert.equal(status, 500);
  assert.equal((body["error"] as { code: string }).code, "model_load_failed");
  assert.equal(await gateway.ask(alpha), answersOf("acme/alpha").hello);
  // Asked again at once it is not tried again.
  const again = await gateway.json("/alpha/api/chat", {
    method: "POST",
    body: JSON.stringify({ model: "acme/broken:Q8_0", messages: [{ role: "user", content: "hi" }] }),
  });
  assert.equal(again.status, 503);
  assert.match(again.headers.get("retry-after") ?? "", /^[1-5]$/);
});

test("an engine that cannot start is said with its last words, and mended when it can", async (t) => {
  const folders = await makeFolders(t);
  const path = join(folders.root, "llama-server");
  await writeFile(path, "#!/bin/sh\necho 'error while loading shared libraries: libcuda.so' >&2\nexit 127\n");
  await chmod(path, 0o755);
  const gateway = await startTestGateway(t, {
    folders,
    yaml: "version: 1\n",
    flags: ["--llama-server", path, "--resync", "0.3"],
  });
  const status = await gateway.until("failed", (now) =>
    now.conditions.some((condition) => condition.type === "RouterReady" && condition.reason === "EngineFailed"),
  );
  const condition = status.conditions.find((entry) => entry.type === "RouterReady");
  assert.match(condition?.message ?? "", /libcuda\.so/);
  assert.equal((await gateway.json("/readyz")).status, 503);
  const { body, status: code } = await gateway.json("/beta/v1/models");
  assert.deepEqual([code, body["data"]], [200, []]);

  await rm(path);
  await symlink(await llamaServer(), path);
  await gateway.converged();
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
  const killedAt: number[] = [];
  for (let round = 0; round < 3; round++) {
    killedAt.push(Date.now());
    process.kill(pid ?? 0, "SIGKILL");
    const before = pid;
    pid = (await gateway.until("restarted", (status) => status.router.connected && status.router.pid !== before)).router
      .pid;
    killedAt.push(Date.now());
  }
  const waits = [0, 1, 2].map((round) => (killedAt[2 * round + 1] ?? 0) - (killedAt[2 * round] ?? 0));
  assert.ok((waits[0] ?? 0) < 900, `the first crash is mended at once: ${waits.join(", ")}`);
  assert.ok((waits[1] ?? 0) >= 900 && (waits[2] ?? 0) >= 1900, `then it waits: ${waits.join(", ")}`);
});
