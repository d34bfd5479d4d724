// The files and the draft model that the document names beside a model, on the real engine: each has its effect, a change of
// one is in force by itself, and no call can set them.
import assert from "node:assert/strict";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { adapterBytes } from "../support/adapter.ts";
import { cacheModel, cacheTalker, makeFolders } from "../support/folders.ts";
import { loadedIds, startTestGateway, type TestGateway } from "../support/gateway.ts";
import { answersOf, modelBytes, plainModel } from "../support/models.ts";
import { codeOf } from "../support/own-calls.ts";
import { pngAddress, projectorBytes } from "../support/projector.ts";
import { chatWith, patchWith, postWith } from "../support/requests.ts";
import { until } from "../support/scratch.ts";

const messages = [{ role: "user", content: "hi" }];

async function promptOf(gateway: TestGateway, model: string): Promise<unknown> {
  return (await gateway.json("/apply-template", postWith({ model, messages }))).body["prompt"];
}

function applied(
  { gateway }: TestGateway,
  id: string,
): { status: string; reason: string; message: string } | undefined {
  const model = gateway.status().models.find((entry) => entry.id === id);
  return model?.conditions.find(({ type }) => type === "Applied");
}

test("a template, adapters and a projector are in force, and a call can change none of them", async (t) => {
  const folders = await makeFolders(t);
  const main = "acme/main:Q8_0";
  await cacheModel(folders, "acme/main", "main-Q8_0.gguf", modelBytes(plainModel("main")));
  const { stateDir } = folders;
  await mkdir(join(stateDir, "files"));
  const template = "{% if tools %}T{% endif %}{% for m in messages %}{{ m.content }}{% endfor %} says";
  await writeFile(join(stateDir, "a.jinja"), template);
  await writeFile(join(stateDir, "files", "p.gguf"), projectorBytes());
  for (const name of ["x", "y"]) await writeFile(join(stateDir, "files", `${name}.gguf`), adapterBytes(name));
  const gateway = await startTestGateway(t, {
    folders,
    yaml: `version: 1
models:
  - id: ${main}
    chatTemplate: ./a.jinja
    lora: [{ source: ./files/x.gguf }, { source: ./files/y.gguf, scale: 0.5 }]
    mmproj: files/p.gguf
`,
  });
  await gateway.converged();
  assert.equal(applied(gateway, main)?.reason, "InForce");

  assert.equal(await promptOf(gateway, main), "hi says");
  const picture = [{ role: "user", content: [{ type: "image_url", image_url: { url: pngAddress() } }] }];
  const seen = await gateway.json("/v1/chat/completions", postWith({ model: main, messages: picture, max_tokens: 4 }));
  assert.equal(seen.status, 200, JSON.stringify(seen.body));
  const { body: shown } = await gateway.json("/api/show", postWith({ model: main }));
  assert.deepEqual(shown["capabilities"], ["completion", "tools", "vision"]);
  assert.equal(shown["template"], template);
  const native = { model: main, messages: [{ role: "user", content: "x", images: [pngAddress().split(",")[1]] }] };
  assert.equal((await gateway.json("/api/chat", postWith({ ...native, stream: false }))).status, 200);

  // Its own process, as the router has nothing of adapters.
  const preset = await readFile(join(stateDir, "router.preset.ini"), "utf8");
  assert.match(preset, /^lora-scaled = \S+\/files\/x\.gguf:1,\S+\/files\/y\.gguf:0\.5$/m);

  const before = (await gateway.json("/api/desired")).body;
  for (const patch of [
    { chatTemplate: "./other.jinja" },
    { lora: [{ source: "/etc/passwd" }] },
    { mmproj: "../p.gguf" },
    { draft: main },
  ]) {
    const answer = await gateway.json("/api/desired?wait=true", patchWith({ models: { [main]: patch } }));
    assert.deepEqual([answer.status, codeOf(answer)], [403, "file_only"], JSON.stringify(answer.body));
  }
  assert.deepEqual((await gateway.json("/api/desired")).body, before);
  const beside = await gateway.json("/api/desired?wait=true", patchWith({ models: { [main]: { ctxSize: 1024 } } }));
  assert.equal(beside.status, 200);
  const { document } = (await gateway.json("/api/desired")).body as { document: object };
  assert.equal((await gateway.json("/api/desired", { ...patchWith(document), method: "PUT" })).status, 200);
  assert.equal(await promptOf(gateway, main), "hi says");
});

test("a draft model guesses tokens that are taken, and one that is missing shows in the condition", async (t) => {
  const folders = await makeFolders(t);
  const bytes = modelBytes(plainModel("main"));
  await cacheModel(folders, "acme/main", "main-Q8_0.gguf", bytes);
  // The same vocabulary: what it guesses is taken.
  await cacheModel(folders, "acme/draft", "draft-Q8_0.gguf", bytes);
  const [main, draft] = ["acme/main:Q8_0", "acme/draft:Q8_0"];
  const gateway = await startTestGateway(t, {
    folders,
    yaml: `version: 1\nmodels: [{ id: "${main}", draft: "${draft}" }, "${draft}"]\n`,
  });
  await gateway.converged();
  const guessed = async (): Promise<number> => {
    const { body } = await gateway.json("/v1/chat/completions", chatWith(main, "long"));
    const { choices, timings } = body as {
      choices: [{ message: { content: string } }];
      timings: { draft_n_accepted?: number };
    };
    assert.equal(choices[0].message.content, answersOf("main").long);
    return timings.draft_n_accepted ?? 0;
  };
  assert.ok((await guessed()) > 50);
  await gateway.json("/api/remove-model", postWith({ model: draft }));
  await gateway.until("told", () => applied(gateway, main)?.reason === "CannotApply");
  assert.match(applied(gateway, main)?.message ?? "", /^draft is left out: acme\/draft:Q8_0 is not another model/);
  assert.equal(await guessed(), 0);
});

test("a template that is edited is in force by itself, other models stay loaded, and one that is deleted is left out", async (t) => {
  const folders = await makeFolders(t);
  const [id, other] = [await cacheTalker(folders, "acme/a"), await cacheTalker(folders, "acme/b")];
  const path = join(folders.stateDir, "a.jinja");
  await writeFile(path, "first");
  const yaml = `version: 1\nmodels: [{ id: "${id}", chatTemplate: ./a.jinja }, "${other}"]\n`;
  const gateway = await startTestGateway(t, { folders, yaml });
  await gateway.converged();
  await gateway.ask(other);
  assert.equal(await promptOf(gateway, id), "first");
  await writeFile(path, "second");
  await until("the edit is in force", async () => (await promptOf(gateway, id)) === "second");
  assert.ok((await loadedIds(gateway)).includes(other));

  await rm(path);
  await gateway.until("told", () => applied(gateway, id)?.reason === "CannotApply");
  assert.equal(
    applied(gateway, id)?.message,
    "chatTemplate is left out: ./a.jinja does not exist. Correct the setting.",
  );
  assert.equal(await gateway.ask(id), answersOf("acme/a").hello);
  await writeFile(path, "third");
  await until("it is back", async () => (await promptOf(gateway, id)) === "third");
});
