// From Ollama's store to a chat by Ollama's own client, under the name that it had there.
import assert from "node:assert/strict";
import { mkdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { Ollama } from "ollama";
import { commandHere } from "../support/command.ts";
import { makeFolders } from "../support/folders.ts";
import { startTestGateway } from "../support/gateway.ts";
import { answersOf, modelBytes, talkingModel } from "../support/models.ts";
import { ollamaBlob, putOllamaModel } from "../support/ollama-store.ts";

test("moving in from Ollama", async (t) => {
  const folders = await makeFolders(t);
  const store = join(folders.root, "ollama");
  const bytes = modelBytes(talkingModel("mover"));
  const layers = { model: bytes, template: "{{ .Prompt }}" };
  await putOllamaModel(store, "mover/latest", { layers: { ...layers, params: '{"num_ctx":1024}' } });
  await putOllamaModel(store, "short/1b", { layers: { ...layers, params: '{"num_predict":1}' } });
  const gateway = await startTestGateway(t, { folders, yaml: "version: 1 # mine\nmodels: []\n" });
  const imported = await commandHere(folders, ["import", "ollama", store, "--write"], { OLLAMA_KEEP_ALIVE: "10m" });
  assert.equal(imported.code, 0, imported.stderr);
  const id = "ollama/mover:Q4_K_M";
  await gateway.until(
    "the model is here",
    ({ models, sync }) => sync === "Synced" && models.some((model) => model.id === id),
  );
  const client = new Ollama({ host: gateway.url });
  const chat = (model: string) => client.chat({ model, messages: [{ role: "user", content: "hi" }] });

  await t.test("its names answer, with their parameters", async () => {
    const listed = (await client.list()).models.map(({ name }) => name);
    assert.ok(listed.includes(id) && listed.includes("short:1b"), listed.join());
    const { message, model } = await chat("mover:latest");
    assert.deepEqual([message.content, model], [answersOf("mover").hello, "mover:latest"]);
    const cut = await chat("short:1b");
    assert.deepEqual([cut.done_reason, cut.eval_count], ["length", 1]);
    const { body } = await gateway.json("/api/ps");
    const loaded = (body["models"] as { name: string; context_length: number }[]).map((each) => [
      each.name,
      each.context_length,
    ]);
    assert.deepEqual(loaded, [[id, 1024]]);
  });

  await t.test("its file is linked, not copied", async () => {
    const blob = ollamaBlob(store, bytes);
    const cached = join(folders.cacheDir, "models--ollama--mover", "blobs", blob.slice(-64));
    assert.equal((await stat(cached)).ino, (await stat(blob)).ino);
    assert.match(await readFile(folders.configPath, "utf8"), /^version: 1 # mine\n/);
  });

  await t.test("a file in LM Studio's folders answers too, by its id on the hub", async () => {
    const folder = join(folders.root, ".lmstudio", "models", "acme", "Studio-GGUF");
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, "Studio-Q8_0.gguf"), modelBytes(talkingModel("studio")));
    const before = await readFile(folders.configPath, "utf8");
    const source = join(folder, "Studio-Q8_0.gguf");
    await folders.writeConfig(`${before}  - { id: "acme/Studio-GGUF:Q8_0", source: "${source}", aliases: [studio] }\n`);
    await gateway.until("the model is here", ({ models, sync }) => sync === "Synced" && models.length === 2);
    assert.equal((await chat("studio")).message.content, answersOf("studio").hello);
  });

  await t.test("after `ollama rm` it still answers, and the status names the missing file", async () => {
    await rm(store, { recursive: true });
    await gateway.json("/api/reconcile", { method: "POST" });
    const { models } = await gateway.until("the loss is seen", ({ conditions }) =>
      conditions.some(({ type, reason }) => type === "Synced" && reason === "SourceMissing"),
    );
    assert.equal(models.find((model) => model.id === id)?.id, id);
    assert.equal((await chat("mover")).message.content, answersOf("mover").hello);
  });
});
