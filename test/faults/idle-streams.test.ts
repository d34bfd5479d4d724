// A thousand streams on which nothing happens: what they cost. A gateway process of its own, started as `npm start` does.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { type RunningCommand, startCommand } from "../support/command.ts";
import { cacheTalker, type GatewayFolders, makeFolders } from "../support/folders.ts";
import { residentMegabytes } from "../support/processes.ts";
import { type RawClient, rawClient, rawGet, rawPost } from "../support/raw-client.ts";
import { until } from "../support/scratch.ts";

const streams = 1_000;
const mostMegabytes = 120;
const room = { GATEWAY_EVENT_LISTENERS: "2000", GATEWAY_QUEUE_LIMIT: "2000" };

async function openAll(t: TestContext, url: string, request: string): Promise<readonly RawClient[]> {
  const clients: RawClient[] = [];
  for (let n = 0; n < streams; n++) {
    const client = await rawClient(t, url);
    client.send(request);
    clients.push(client);
  }
  return clients;
}

async function assertSmall(t: TestContext, serve: RunningCommand, what: string, before: number): Promise<void> {
  const now = await residentMegabytes(serve.process.pid ?? 0);
  t.diagnostic(`${streams} ${what}: ${Math.round(now)} MB, ${Math.round(before)} MB without`);
  assert.ok(now < mostMegabytes, `${now} MB`);
}

async function start(
  t: TestContext,
  folders: GatewayFolders,
  engine: Readonly<Record<string, string>> = {},
): Promise<{ serve: RunningCommand; url: string; before: number }> {
  const serve = await startCommand(t, folders, ["serve", "--log-level", "error"], { ...room, ...engine });
  const [, url = ""] = await serve.output(/listens on (\S+);/);
  return { serve, url, before: await residentMegabytes(serve.process.pid ?? 0) };
}

test("a thousand readers of /api/events", async (t) => {
  const folders = await makeFolders(t);
  await folders.writeConfig("version: 1\n");
  const { serve, url, before } = await start(t, folders);
  await serve.output(/Ready\./);
  const clients = await openAll(t, url, rawGet("/api/events"));
  for (const client of clients) await client.until(/: from \w+-\d/);
  await assertSmall(t, serve, "readers of /api/events", before);
  const change = await fetch(`${url}/api/desired`, {
    method: "PATCH",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ context: { default: 2048 } }),
  });
  assert.equal(change.status, 200);
  for (const client of clients) await client.until(/event: document\n/);
  await assertSmall(t, serve, "readers of /api/events after a change", before);
});

test("a thousand chats that wait", async (t) => {
  const folders = await makeFolders(t);
  const model = await cacheTalker(folders, "acme/alpha");
  await folders.writeConfig(`version: 1\nmodels: ["${model}"]\n`);
  // A router that never gets ready: everybody waits for it.
  const script = join(folders.root, "deaf-server");
  await writeFile(script, '#!/bin/sh\ncase "$1" in --help) exit 0 ;; esac\nexec sleep 600\n', { mode: 0o755 });
  const { serve, url, before } = await start(t, folders, { LLAMA_SERVER: script });
  await until("it starts", async () => (await (await fetch(`${url}/status`)).text()).includes('"phase":"starting"'));
  const messages = [{ role: "user", content: "Are you there?" }];
  const clients = await openAll(t, url, rawPost("/v1/chat/completions", { model, messages, stream: true }));
  // The first sign of life that a waiting client gets.
  for (const client of clients) await client.until(/^HTTP\/1\.1 200 [^]*: waiting/);
  await assertSmall(t, serve, "chats that wait", before);
  const began = performance.now();
  serve.process.kill("SIGTERM");
  for (const client of clients) await client.until(/data: .*shutting_down/);
  assert.equal((await serve.exited).code, 0);
  t.diagnostic(`stopped with all of them in ${Math.round(performance.now() - began)} ms`);
});
