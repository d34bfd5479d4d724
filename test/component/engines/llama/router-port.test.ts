// A port that another program takes between its choice and its use: the next start is on another one, and nobody takes
// the stranger for the router. On the real engine.
import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { createRouter, type Router } from "../../../../src/engines/llama/router.ts";
import { freePort } from "../../../../src/engines/process/free-port.ts";
import { cleanUp } from "../../../support/clean-up.ts";
import { llamaServer } from "../../../support/engine.ts";
import { patienceMs } from "../../../support/patience.ts";
import { refusal, scratchFolder } from "../../../support/scratch.ts";

/** A program on a port of its own that says of itself that it is well, to whoever asks. */
async function stranger(t: TestContext): Promise<{ readonly port: number; readonly asked: string[] }> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? "");
    if (request.url === "/health") response.end(`{"status":"ok"}`);
    else response.writeHead(401).end(`{"error":{"message":"Invalid API Key"}}`);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanUp(t, () => server.close());
  return { port: (server.address() as AddressInfo).port, asked };
}

async function routerOn(t: TestContext, choosePort: () => Promise<number>): Promise<Router> {
  const root = await scratchFolder(t);
  const cacheDir = join(root, "hub");
  await mkdir(cacheDir);
  const presetPath = join(root, "router.preset.ini");
  await writeFile(presetPath, "[*]\noffline = true\n");
  const router = createRouter({
    presetPath,
    stateDir: root,
    cacheDir,
    environment: { PATH: process.env["PATH"] },
    startTimeoutMs: patienceMs,
    stopGraceMs: 2_000,
    reloadTimeoutMs: patienceMs,
    pingMs: patienceMs,
    now: performance.now.bind(performance),
    choosePort,
    onOutput: () => undefined,
    onKey: () => undefined,
    onChange: () => undefined,
    warn: () => undefined,
  });
  cleanUp(t, router.close);
  return router;
}

const inputs = { preset: "", cache: "", repos: [] };

test("a router whose port was taken meanwhile starts on another one with the next try", async (t) => {
  const taken = await stranger(t);
  let choices = 0;
  const router = await routerOn(t, () => (++choices < 2 ? Promise.resolve(taken.port) : freePort()));
  const start = async (): Promise<void> => router.start(await llamaServer(), inputs, new AbortController().signal);
  assert.equal((await refusal(start())).code, "engine_failed");
  await start();
  assert.equal(choices, 2);
  assert.equal(router.isReady(), true);
  assert.notEqual(new URL(router.client().origin).port, String(taken.port));
  assert.equal(router.snapshot().crashes.length, 0);
});

test("a router that gets no port says why", async (t) => {
  const taken = await stranger(t);
  const router = await routerOn(t, () => Promise.resolve(taken.port));
  const error = await refusal(router.start(await llamaServer(), inputs, new AbortController().signal));
  assert.equal(error.code, "engine_failed");
  assert.match(error.message, new RegExp(`couldn't bind.*port: ${taken.port}`));
  assert.equal(router.snapshot().phase, "stopped");
});
