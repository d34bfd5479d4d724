// bench ID as people use it: the installed llama-bench measures a model that the gateway has unloaded, and holds, meanwhile.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { BenchBody } from "../../schemas/admin.ts";
import type { StatusReport } from "../../src/status/report.ts";
import { commandHere, startCommand } from "../support/command.ts";
import { cacheModel, cacheTalker, makeFolders } from "../support/folders.ts";
import { loadedIds, modelsOf, startTestGateway } from "../support/gateway.ts";
import { answersOf, embeddingModel, modelBytes, slowModel } from "../support/models.ts";
import { childrenOf, isRunning } from "../support/processes.ts";
import { patchWith, postWith } from "../support/requests.ts";
import { until } from "../support/scratch.ts";

const embedder = "acme/embedder:Q8_0";
const slow = "acme/slow:Q8_0";
const secrets = { HF_TOKEN: "hf_secret-of-the-hub", NVIDIA_API_KEY: "a-key-to-a-paid-service" };

test("bench measures with the model's settings, unloaded and held; Ctrl+C ends it", async (t) => {
  const folders = await makeFolders(t);
  const talker = await cacheTalker(folders, "acme/talker");
  await cacheModel(folders, "acme/embedder", "model-Q8_0.gguf", modelBytes(embeddingModel("embedder")));
  await cacheModel(folders, "acme/slow", "model-Q8_0.gguf", modelBytes(slowModel("slow")));
  const gateway = await startTestGateway(t, {
    folders,
    environment: secrets,
    yaml: `version: 1
models:
  - { id: "${talker}", ctxSize: 1024, preset: { threads: 1, ubatch-size: 256, temp: 0.5 } }
  - { id: "${embedder}", preset: { threads: 1 } }
  - { id: "${slow}", preset: { threads: 1 } }
`,
  });
  await gateway.converged();
  const run = (...args: readonly string[]) => commandHere(folders, args, secrets);

  await t.test("JSON has the speeds, the settings and what was left out", async () => {
    assert.equal(await gateway.ask(talker), answersOf("acme/talker").hello);
    const { code, stdout, stderr } = await run("bench", "talker", "--json");
    assert.equal(code, 0, stderr);
    const result = JSON.parse(stdout) as BenchBody;
    assert.deepEqual(
      result.tests.map(({ kind, tokens }) => [kind, tokens]),
      [
        ["prompt", 512],
        ["generation", 128],
      ],
    );
    for (const { tokensPerSecond } of result.tests) assert.ok(tokensPerSecond > 100, stdout);
    assert.equal(result.model, talker);
    assert.ok(result.file.startsWith(join(folders.cacheDir, "models--acme--talker", "snapshots")), result.file);
    assert.deepEqual(result.settings, { threads: "1", "ubatch-size": "256" });
    assert.deepEqual(result.leftOut, ["ctx-size", "temp"]);
    assert.match(result.build, /^\d+ \(.+\)$/);
    assert.deepEqual(await loadedIds(gateway), [], "it was unloaded, and nothing has loaded it since");
  });

  await t.test("the table has the same; a model for embeddings has no generation", async () => {
    const { code, stdout, stderr } = await run("bench", embedder);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^Model +acme\/embedder:Q8_0, /m);
    assert.match(stdout, /^Settings +.*embeddings true.*threads 1/m);
    assert.match(stdout, /^prompt +512 +[\d.]+ +[\d.]+$/m);
    assert.doesNotMatch(stdout, /^generation/m);
  });

  await t.test("an unknown model is refused", async () => {
    const { code, stderr } = await run("bench", "nope");
    assert.equal(code, 1);
    assert.match(stderr, /model 'nope' not found/);
  });

  await t.test("what does not fit beside the loaded models is refused, and measured by nothing", async () => {
    await gateway.ask(talker);
    const taken = (await modelsOf(gateway)).get(talker)?.runtime?.takes?.["Host"] ?? 0;
    const limit = (budget: number | null) => gateway.json("/api/desired?wait=true", patchWith({ memory: { budget } }));
    await limit(taken + 2 ** 20);
    const { code, stderr } = await run("bench", slow);
    assert.equal(code, 1);
    assert.match(stderr, /needs \d+ MiB of main memory, and \d MiB are free for it beside the loaded models/);
    await limit(null);
    await gateway.json("/api/eject-model", postWith({ model: talker }));
  });

  await t.test(
    "a request waits while it runs; Ctrl+C ends the tool, which has no secret, and the request is answered",
    async () => {
      const command = await startCommand(t, folders, ["bench", slow], secrets);
      const pid = await until("llama-bench measures", async () => {
        for (const child of await childrenOf(process.pid)) {
          const words = await readFile(`/proc/${child}/cmdline`, "utf8").catch(() => "");
          if (words.includes("llama-bench\0--model\0")) return child;
        }
        return null;
      });
      const environment = await readFile(`/proc/${pid}/environ`, "utf8");
      for (const secret of Object.values(secrets)) assert.ok(!environment.includes(secret));
      const answer = gateway.ask(slow);
      const isWaiting = ({ waiting }: StatusReport) =>
        waiting.some(({ model, for: why }) => model === slow && why === "drain");
      await gateway.until("the request waits for it", isWaiting);
      assert.deepEqual(await loadedIds(gateway), []);
      command.process.kill("SIGINT");
      await command.exited;
      assert.equal(await answer, answersOf("slow").hello);
      assert.equal(await isRunning(pid), false);
    },
  );
});
