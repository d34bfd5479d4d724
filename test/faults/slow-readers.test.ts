// Clients that do not read: their answers pile up nowhere in the gateway, others do not notice them, and they are dropped in
// the end. A gateway process of its own, as it is its memory that counts.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { findLeftovers } from "../../src/engines/process/leftovers.ts";
import { startCommand } from "../support/command.ts";
import { cacheModel, makeFolders } from "../support/folders.ts";
import { streamChat } from "../support/gateway.ts";
import { answersOf, modelBytes, talkingModel } from "../support/models.ts";
import { residentMegabytes } from "../support/processes.ts";
import { rawClient, rawPost } from "../support/raw-client.ts";
import { until } from "../support/scratch.ts";

const model = "acme/endless:Q8_0";
const context = 131_072;

interface Slot {
  readonly is_processing: boolean;
}

/** What the model's own process says of its slots. */
async function slotsOf(stateDir: string): Promise<readonly Slot[]> {
  for (const pid of await findLeftovers(stateDir)) {
    const args = (await readFile(`/proc/${pid}/cmdline`, "utf8")).split("\0");
    if (!args.includes(model)) continue;
    const environment = (await readFile(`/proc/${pid}/environ`, "utf8")).split("\0");
    const key = environment.find((entry) => entry.startsWith("LLAMA_API_KEY="))?.slice("LLAMA_API_KEY=".length);
    const response = await fetch(`http://127.0.0.1:${args[args.indexOf("--port") + 1] ?? ""}/slots`, {
      headers: { authorization: `Bearer ${key ?? ""}` },
    });
    return (await response.json()) as Slot[];
  }
  throw new Error("the model is not loaded");
}

test("three clients that read nothing of an endless answer", async (t) => {
  const folders = await makeFolders(t);
  await cacheModel(
    folders,
    "acme/endless",
    "endless-Q8_0.gguf",
    modelBytes(talkingModel("endless", { contextLength: context })),
  );
  await folders.writeConfig(
    `version: 1\nmodels: [{ id: "${model}", ctxSize: ${context}, preset: { parallel: 4, threads: 1 } }]\n`,
  );
  const serve = await startCommand(t, folders, ["serve", "--write-stall", "6"]);
  const [, url = ""] = await serve.output(/listens on (\S+);/);
  await serve.output(/Ready\./);
  const pid = serve.process.pid ?? 0;
  const long = answersOf("endless").long;
  assert.equal((await streamChat(url, model, "long")).text, long);
  const inFlight = async (): Promise<number> => {
    const body = (await (await fetch(`${url}/status`)).json()) as { inFlight: Record<string, number> };
    return body.inFlight[model] ?? 0;
  };
  const before = await residentMegabytes(pid);

  const request = rawPost("/v1/chat/completions", {
    model,
    stream: true,
    messages: [{ role: "user", content: "forever" }],
    logprobs: true,
    top_logprobs: 20,
  });
  const deaf = await Promise.all([rawClient(t, url), rawClient(t, url), rawClient(t, url)]);
  for (const client of deaf) {
    client.socket.pause();
    client.send(request);
  }
  await until("all three are answered", async () => (await inFlight()) === 3);
  const began = performance.now();
  assert.equal((await streamChat(url, model, "long")).text, long);
  t.diagnostic(`another stream beside them: ${Math.round(performance.now() - began)} ms`);

  // One that reads slowly is no deaf one.
  const slow = await rawClient(t, url);
  slow.send(request);
  const reading = setInterval(() => void (slow.socket.isPaused() ? slow.socket.resume() : slow.socket.pause()), 100);
  let most = before;
  await until("they are dropped", async () => {
    most = Math.max(most, await residentMegabytes(pid));
    return (await inFlight()) === 1;
  });
  t.diagnostic(`${Math.round(before)} MB before, at most ${Math.round(most)} MB with three answers that nobody reads`);
  assert.ok(most - before < 30, `${before} MB, then ${most} MB`);
  clearInterval(reading);
  assert.equal(slow.socket.destroyed, false);
  slow.socket.destroy();
  await until("nobody is left", async () => (await inFlight()) === 0);
  await until("the engine rests", async () => (await slotsOf(folders.stateDir)).every((slot) => !slot.is_processing));
});
