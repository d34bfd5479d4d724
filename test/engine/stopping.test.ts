// A real gateway process that is told to end: what its clients see, how soon it is gone, what it leaves.
import assert from "node:assert/strict";
import { access, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { findLeftovers } from "../../src/engines/process/leftovers.ts";
import type { StatusReport } from "../../src/status/report.ts";
import { cleanUp } from "../support/clean-up.ts";
import { type RunningCommand, startCommand } from "../support/command.ts";
import {
  cacheTalker,
  type GatewayFolders,
  makeFolders,
  makeTalkerFolders,
  talker,
  talkerDocument,
} from "../support/folders.ts";
import { streamChat } from "../support/gateway.ts";
import { instanceOf, suspend } from "../support/held-answer.ts";
import { startLoopbackHub } from "../support/loopback-hub.ts";
import { modelBytes, talkingModel } from "../support/models.ts";
import { isRunning } from "../support/processes.ts";
import { rawClient, rawGet, rawPost } from "../support/raw-client.ts";
import { chatWith, postWith } from "../support/requests.ts";
import { until } from "../support/scratch.ts";
import { lowVoice, soundForm, startSpeechGateway } from "../support/speech.ts";
import { someSound } from "../support/whisper.ts";

interface Serving {
  readonly serve: RunningCommand;
  readonly url: string;
  /** Resolves with the exit code and the ms since the call. */
  stopped(signal: NodeJS.Signals): Promise<{ readonly code: number | null; readonly ms: number }>;
}

async function start(
  t: TestContext,
  folders: GatewayFolders,
  flags: readonly string[] = [],
  environment: Readonly<Record<string, string>> = {},
): Promise<Serving> {
  const serve = await startCommand(t, folders, ["serve", ...flags], environment);
  const [, url = ""] = await serve.output(/listens on (\S+);/);
  await serve.output(/Ready\./);
  return {
    serve,
    url,
    stopped: async (signal) => {
      const began = performance.now();
      serve.process.kill(signal);
      const { code } = await serve.exited;
      return { code, ms: performance.now() - began };
    },
  };
}

async function startSlow(t: TestContext, flags: readonly string[]): Promise<Serving & { folders: GatewayFolders }> {
  const folders = await makeTalkerFolders(t);
  return { folders, ...(await start(t, folders, flags)) };
}

async function assertNothingLeft(folders: GatewayFolders): Promise<void> {
  assert.deepEqual(await findLeftovers(folders.stateDir), []);
  await assert.rejects(access(join(folders.stateDir, "gateway.lock")));
}

/** A POST that ends with `body`'s last line. */
async function lastLines(url: string, path: string, body: object, onBegun: () => void): Promise<string> {
  const response = await fetch(url + path, postWith(body));
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    if (text === "") onBegun();
    text += decoder.decode(chunk as Uint8Array, { stream: true });
  }
  return text.trimEnd().split("\n").slice(-2).join("\n");
}

test("without work it is gone at once, whoever listens or keeps a connection open", async (t) => {
  const folders = await makeFolders(t);
  const model = await cacheTalker(folders, "acme/alpha");
  await folders.writeConfig(`version: 1\nmodels: ["${model}"]\n`);
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
    const { url, stopped } = await start(t, folders, ["--stop-grace", "300"]);
    // With a loaded model, which has to end too.
    await streamChat(url, model, "hi");
    const listener = await rawClient(t, url);
    listener.send(rawGet("/api/events"));
    await listener.until(/: from \w+-\d/);
    const idle = await rawClient(t, url);
    idle.send(rawGet("/livez"));
    await idle.until(/"ok"/);
    const mute = await rawClient(t, url);
    const { code, ms } = await stopped(signal);
    t.diagnostic(`${signal}: ${Math.round(ms)} ms`);
    assert.equal(code, 0, signal);
    assert.ok(ms < 120_000, `${signal}: ${ms} ms, though nothing is under way`);
    assert.match(listener.text(), /: the gateway is stopping\n\n\r\n0\r\n\r\n$/);
    await Promise.all([idle.ended(), mute.ended()]);
    await assertNothingLeft(folders);
  }
});

test("while it stops: not ready but alive, nothing new, and streams end in their family's error frame", async (t) => {
  const { folders, url, serve } = await startSlow(t, ["--stop-grace", "8"]);
  const body = { model: talker, messages: [{ role: "user", content: "forever" }], max_tokens: 100_000 };
  const begun: Promise<void>[] = [];
  const stream = (path: string, more: object): Promise<string> => {
    let tell: () => void = () => undefined;
    begun.push(new Promise((resolve) => (tell = resolve)));
    return lastLines(url, path, { ...body, ...more }, () => tell());
  };
  const streams = [
    stream("/v1/chat/completions", { stream: true }),
    stream("/api/chat", {}),
    stream("/v1/messages", { stream: true }),
    stream("/v1/responses", { stream: true, input: "forever", messages: undefined }),
  ];
  await Promise.all(begun);
  const release = suspend(t, await instanceOf(folders, talker));
  serve.process.kill("SIGTERM");
  await serve.output(/Stopping/);
  const readiness = await until("not ready", async () => {
    const answer = await fetch(`${url}/readyz`);
    return answer.status === 503 && ((await answer.json()) as object);
  });
  assert.deepEqual(readiness, { status: "unready", reason: "ShuttingDown", message: "The gateway is stopping." });
  assert.equal((await fetch(`${url}/livez`)).status, 200);
  const { conditions } = (await (await fetch(`${url}/status`)).json()) as StatusReport;
  const ready = conditions.find(({ type }) => type === "Ready");
  assert.deepEqual([ready?.status, ready?.reason], ["False", "ShuttingDown"]);
  const message = "the gateway is stopping";
  const shapes: readonly [string, (body: { error: { message?: string; code?: string } }) => unknown][] = [
    ["/v1/chat/completions", ({ error }) => [error.code, error.message]],
    ["/alpha/api/chat", ({ error }) => ["shutting_down", error]],
    ["/v1/messages", ({ error }) => [error.code, error.message]],
    ["/api/set-ctx-size", ({ error }) => [error.code, error.message]],
  ];
  for (const [path, read] of shapes) {
    const refused = await fetch(url + path, chatWith(talker));
    assert.deepEqual([refused.status, refused.headers.get("connection")], [503, "close"], path);
    assert.ok(refused.headers.has("retry-after"), path);
    assert.deepEqual(read((await refused.json()) as never), ["shutting_down", message], path);
  }
  const [compat = "", native = "", messages = "", responses = ""] = await Promise.all(streams);
  release();
  const [, frame = ""] = /^data: (.*)$/.exec(compat.split("\n").at(-1) ?? "") ?? [];
  assert.equal((JSON.parse(frame) as { error: { code: string } }).error.code, "shutting_down");
  assert.deepEqual(JSON.parse(native.split("\n").at(-1) ?? ""), { error: message });
  for (const text of [messages, responses]) assert.match(text, /^event: error\ndata: .*shutting_down/);
  assert.equal((await serve.exited).code, 0);
  await assertNothingLeft(folders);
});

test("who waits for a model is turned away at once; who has an answer under way keeps it", async (t) => {
  const folders = await makeTalkerFolders(t);
  const [one, two] = [await cacheTalker(folders, "acme/one"), await cacheTalker(folders, "acme/two")];
  await folders.writeConfig(`${talkerDocument}  - "${one}"\n  - "${two}"\n`);
  // One place, which the endless answer has.
  const { url, serve } = await start(t, folders, ["--models-max", "1", "--stop-grace", "4"]);
  let waiting: Promise<{ status: number; body: string }[]> | null = null;
  let refusedAt = 0;
  const ask = async (model: string): Promise<{ status: number; body: string }> => {
    const response = await fetch(`${url}/v1/chat/completions`, chatWith(model));
    return { status: response.status, body: await response.text() };
  };
  const change = async (): Promise<{ status: number; body: string }> => {
    const response = await fetch(`${url}/api/set-ctx-size`, postWith({ model: talker, ctx_size: 768 }));
    return { status: response.status, body: await response.text() };
  };
  const under = streamChat(url, talker, "forever", () => {
    // The change drains: it waits for the endless answer.
    waiting ??= Promise.all([ask(one), ask(two), change()]).finally(() => (refusedAt = performance.now()));
  });
  await until("both have asked", () => waiting !== null);
  const release = suspend(t, await instanceOf(folders, talker));
  await fetch(`${url}/status`);
  serve.process.kill("SIGTERM");
  const { done, error } = await under;
  const cutAt = performance.now();
  release();
  assert.deepEqual([done, error], [false, "the gateway is stopping"]);
  for (const { status, body } of (await (waiting as Promise<{ status: number; body: string }[]> | null)) ?? []) {
    assert.equal(status, 503, body);
    assert.match(body, /shutting_down/);
  }
  assert.ok(refusedAt < cutAt, `turned away ${refusedAt - cutAt} ms after the answer's grace`);
  assert.equal((await serve.exited).code, 0);
  await assertNothingLeft(folders);
});

test("a second signal does not wait, and no process stays; the echo of the first one is none", async (t) => {
  const { folders, url, serve } = await startSlow(t, ["--stop-grace", "300"]);
  const stream = streamChat(url, talker, "forever", () => undefined).catch(() => null);
  await until("it answers", async () => (await (await fetch(`${url}/status`)).text()).includes(`"${talker}":1`));
  const pids = await findLeftovers(folders.stateDir);
  assert.equal(pids.length, 2);
  // As from the terminal and from npm, at once; two of a kind would be merged.
  serve.process.kill("SIGINT");
  serve.process.kill("SIGTERM");
  await serve.output(/Stopping/);
  assert.equal((await fetch(`${url}/livez`)).status, 200);
  await new Promise((resolve) => setTimeout(resolve, 250));
  serve.process.kill("SIGTERM");
  assert.equal((await serve.exited).code, 143);
  await stream;
  // Killed is killed, though the kernel may take a moment to clear them away.
  for (const pid of pids) await until(`${pid} is gone`, async () => !(await isRunning(pid)));
  const again = await start(t, folders);
  assert.equal((await again.stopped("SIGTERM")).code, 0);
});

test("told to end while it starts, or while the router does, it ends in order", async (t) => {
  const folders = await makeFolders(t);
  await folders.writeConfig("version: 1\n");
  const serve = await startCommand(t, folders, ["serve"]);
  await until("it has the folder", () =>
    access(join(folders.stateDir, "gateway.lock")).then(
      () => true,
      () => false,
    ),
  );
  serve.process.kill("SIGTERM");
  assert.equal((await serve.exited).code, 0);
  await assertNothingLeft(folders);

  // Never healthy: it is waited for.
  const script = join(folders.root, "deaf-server");
  await writeFile(script, '#!/bin/sh\ncase "$1" in --help) exit 0 ;; esac\nexec sleep 600\n', { mode: 0o755 });
  const deaf = await startCommand(t, folders, ["serve"], { LLAMA_SERVER: script });
  const [, url = ""] = await deaf.output(/listens on (\S+);/);
  await until("it starts", async () => (await (await fetch(`${url}/status`)).text()).includes('"phase":"starting"'));
  deaf.process.kill("SIGTERM");
  assert.equal((await deaf.exited).code, 0);
  await assertNothingLeft(folders);
});

test("a pull that is cut by the end says so, and the next start goes on with it", async (t) => {
  const hub = await startLoopbackHub(t);
  const file = "far-Q8_0.gguf";
  const bytes = Buffer.concat([modelBytes(talkingModel("far")), Buffer.alloc(32 << 20, 7)]);
  hub.addRepo("acme/far", { files: { [file]: bytes } });
  hub.pace(file, 1 << 20);
  const folders = await makeFolders(t);
  await folders.writeConfig("version: 1\n");
  const first = await start(t, folders, [], { HF_ENDPOINT: hub.endpoint });
  const pull = fetch(`${first.url}/api/pull`, postWith({ model: "acme/far:Q8_0" })).then((answer) => answer.text());
  cleanUp(t, () => pull.catch(() => undefined));
  await until("some of it is there", () => hub.sentBytes(file) > 2 << 20);
  assert.equal((await first.stopped("SIGTERM")).code, 0);
  assert.ok(hub.sentBytes(file) < bytes.length, "it was not waited for");
  assert.deepEqual(JSON.parse((await pull).trimEnd().split("\n").at(-1) ?? ""), { error: "the gateway is stopping" });
  const before = hub.requests.length;
  hub.pace(file, 1 << 30);
  const second = await start(t, folders, [], { HF_ENDPOINT: hub.endpoint });
  await until("it is there", async () => (await (await fetch(`${second.url}/v1/models`)).text()).includes("acme/far"));
  // Not what is sent: a connection that is left early has been given more than it took.
  const asked = hub.requests.slice(before).filter(({ path, method }) => method === "GET" && path.includes(file));
  const earliest = Math.min(...asked.map(({ range = "" }) => Number(/^bytes=(\d+)-/.exec(range)?.[1] ?? 0)));
  assert.ok(earliest > 128 << 10, `what had come is not fetched again: ${earliest}`);
});

test("speech that is under way at the end of the grace is cut, and its engines are gone", async (t) => {
  const gateway = await startSpeechGateway(t, { flags: ["--stop-grace", "0.5"] });
  await gateway.say(lowVoice);
  const heard = await gateway.json("/v1/audio/transcriptions", soundForm(someSound()));
  assert.equal(heard.status, 200);
  const pids = [gateway.engine("transcription").pid, gateway.engine("synthesis").pid];
  const body = { voice: lowVoice, input: "This is a sentence that is said over and over again. ".repeat(1_600) };
  const client = await rawClient(t, gateway.url);
  client.socket.pause();
  client.send(rawPost("/v1/audio/speech", body));
  await until("it speaks", () => (gateway.gateway.status().speech.synthesis?.inFlight ?? 0) > 0);
  const began = performance.now();
  await gateway.gateway.stop();
  const ms = performance.now() - began;
  assert.ok(ms < 120_000, `${ms} ms`);
  for (const pid of pids) assert.equal(await isRunning(pid ?? 0), false);
  client.socket.resume();
  const { text } = await client.ended();
  assert.ok(text.startsWith("HTTP/1.1 200") && !text.endsWith("\r\n0\r\n\r\n"), "half of it must not look whole");
});
