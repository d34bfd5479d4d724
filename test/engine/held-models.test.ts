// Clients that hold a model and want nothing of it: answers that nobody reads, prompts larger than any context. Somebody else
// has an answer within seconds, while they are there and after they have left.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { findLeftovers } from "../../src/engines/process/leftovers.ts";
import { cacheModel, cacheTalker, makeFolders } from "../support/folders.ts";
import { startTestGateway, type TestGateway } from "../support/gateway.ts";
import { answersOf, modelBytes, talkingModel } from "../support/models.ts";
import { processorMs } from "../support/processes.ts";
import { rawClient, rawPost } from "../support/raw-client.ts";
import { chatWith } from "../support/requests.ts";
import { until } from "../support/scratch.ts";

const context = 131_072;

async function start(t: TestContext, name: string): Promise<TestGateway> {
  const folders = await makeFolders(t);
  const bytes = modelBytes(talkingModel(name, { contextLength: context }));
  await cacheModel(folders, `acme/${name}`, `${name}-Q8_0.gguf`, bytes);
  const other = await cacheTalker(folders, "acme/other");
  const preset = "preset: { threads: 1, parallel: 2 }";
  const gateway = await startTestGateway(t, {
    folders,
    yaml: `version: 1\nmodels:\n  - { id: "acme/${name}:Q8_0", ctxSize: ${context}, ${preset} }\n  - { id: "${other}", ${preset} }\n`,
    flags: ["--models-max", "1"],
  });
  await gateway.converged();
  return gateway;
}

test("two clients that read nothing: the next one is answered, of this model and of another", async (t) => {
  const gateway = await start(t, "endless");
  const id = "acme/endless:Q8_0";
  assert.equal(await gateway.ask(id), answersOf("endless").hello);
  const request = rawPost("/v1/chat/completions", {
    model: id,
    stream: true,
    messages: [{ role: "user", content: "forever" }],
    logprobs: true,
    top_logprobs: 20,
  });
  const deaf = await Promise.all([rawClient(t, gateway.url), rawClient(t, gateway.url)]);
  for (const client of deaf) {
    client.socket.pause();
    client.send(request);
  }
  await gateway.until("held", ({ inFlight }) => inFlight[id] === 2);
  const began = performance.now();
  /** ms until a model answers while they are there. */
  const answered = async (model: string, hello: string): Promise<number> => {
    assert.equal(await gateway.ask(model), hello);
    return Math.round(performance.now() - began);
  };
  const [same, other] = await Promise.all([
    answered(id, answersOf("endless").hello),
    answered("acme/other:Q8_0", answersOf("acme/other").hello),
  ]);
  t.diagnostic(`the same model after ${same} ms, another in its place after ${other} ms`);
  // They have both slots: their buffers fill, and they are cut. By themselves they may stay for 600 s.
  assert.ok(same < 300_000 && other < 300_000);
});

test("three prompts of 10 MB: one at a time is read, others pass them, and nothing goes on when all have left", async (t) => {
  const gateway = await start(t, "reader");
  const id = "acme/reader:Q8_0";
  assert.equal(await gateway.ask(id), answersOf("reader").hello);
  const pids = await findLeftovers(gateway.stateDir);
  // One of them may be llama-fit-params, which ends meanwhile.
  const workOf = (pid: number): Promise<number> => processorMs(pid).catch(() => 0);
  const busy = async (): Promise<number> => (await Promise.all(pids.map(workOf))).reduce((sum, ms) => sum + ms, 0);
  const before = await busy();
  const leaving = new AbortController();
  const { body } = chatWith(id, "word ".repeat(2_000_000), { stream: true });
  const ask = (): Promise<unknown> =>
    fetch(`${gateway.url}/v1/chat/completions`, { ...chatWith(id), body: body ?? "", signal: leaving.signal })
      .then((response) => response.text())
      .catch(() => null);
  const asked = Array.from({ length: 3 }, ask);
  await gateway.until("they wait", ({ waiting: [first] }) => first?.requests === 2 && first.for === "turn");
  await until("the engine reads", async () => (await busy()) - before > 300);
  const began = performance.now();
  assert.equal(await gateway.ask(id), answersOf("reader").hello);
  const ms = performance.now() - began;
  t.diagnostic(`beside them: ${Math.round(ms)} ms`);
  assert.ok((gateway.gateway.status().waiting[0]?.requests ?? 0) >= 1, "they are still there");

  leaving.abort();
  await Promise.all(asked);
  await gateway.until("nobody waits", ({ waiting, inFlight }) => waiting.length === 0 && inFlight[id] === undefined);
  const left = performance.now();
  let last = await busy();
  await until("the engine rests", async () => {
    await new Promise((resolve) => setTimeout(resolve, 500));
    const now = await busy();
    const ran = now - last;
    last = now;
    return ran < 100;
  });
  t.diagnostic(`the engine rests ${Math.round(performance.now() - left)} ms after they have left`);
  // The prompt that was being read is all that was.
  assert.equal(await gateway.ask(id), answersOf("reader").hello);
  assert.equal(await askLarge(gateway, id), 400);
});

/** The status of a prompt that no context holds. */
async function askLarge({ url }: TestGateway, id: string): Promise<number> {
  const response = await fetch(`${url}/v1/chat/completions`, chatWith(id, "word ".repeat(400_000)));
  await response.text();
  return response.status;
}
