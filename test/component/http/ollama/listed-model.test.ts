// What a list says of a model's file, as scans find it.
import assert from "node:assert/strict";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { cacheNow, createCacheScanner } from "../../../../src/cache/scan/scan.ts";
import type { ModelView } from "../../../../src/catalog/catalog.ts";
import { listedModel } from "../../../../src/http/ollama/model-facts.ts";
import { cacheRepo, commitOf } from "../../../support/cache-folder.ts";
import { modelBytes, plainModel, talkingModel } from "../../../support/models.ts";
import { scratchFolder } from "../../../support/scratch.ts";

test("a list's facts of a file stay until a scan finds another file, and a template of the document counts at once", async (t) => {
  const cacheDir = await scratchFolder(t);
  const { link, main, root } = cacheRepo(cacheDir, "acme/talker");
  const put = async (bytes: Uint8Array): Promise<void> => {
    await main(commitOf("main"));
    await link(commitOf("main"), "talker-Q8_0.gguf", bytes);
  };
  const scanner = createCacheScanner(cacheDir);
  const listed = async (more: Partial<ModelView> = {}): Promise<readonly string[] | undefined> => {
    const { models } = await cacheNow(scanner);
    const [model] = models;
    assert.ok(model && models.length === 1);
    const view = { model, contextLength: null, templateFile: null, projector: null, ...more } as ModelView;
    return (await listedModel(view)).facts?.capabilities;
  };

  await put(modelBytes(plainModel("one")));
  assert.deepEqual(await listed(), ["completion"]);
  assert.deepEqual(await listed({ projector: "/mmproj.gguf" }), ["completion", "vision"]);
  assert.deepEqual(await listed(), ["completion"]);
  const templateFile = join(cacheDir, "own.jinja");
  await writeFile(templateFile, "{{ messages }}<think>");
  assert.deepEqual(await listed({ templateFile }), ["completion", "thinking"]);
  assert.deepEqual(await listed(), ["completion"]);
  await writeFile(templateFile, "{{ messages }}");
  assert.deepEqual(await listed({ templateFile }), ["completion"]);

  await rm(root, { recursive: true });
  await put(modelBytes(talkingModel("another")));
  assert.deepEqual(await listed(), ["completion", "tools", "thinking"]);
});
