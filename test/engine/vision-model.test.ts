// The computed projector on the real engine: with it beside a talking model a picture is taken, without it refused.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { cacheRepo, commitOf } from "../support/cache-folder.ts";
import { startLlamaServer } from "../support/engine.ts";
import { answersOf, modelBytes, talkingModel } from "../support/models.ts";
import { pngAddress, projectorBytes } from "../support/projector.ts";
import { scratchFolder } from "../support/scratch.ts";

const messages = [
  {
    role: "user",
    content: [
      { type: "text", text: "What is this?" },
      { type: "image_url", image_url: { url: pngAddress() } },
    ],
  },
];

async function ask(url: string, model: string): Promise<{ status: number; text: string }> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model, messages }),
    signal: AbortSignal.timeout(300_000),
  });
  return { status: response.status, text: await response.text() };
}

test("beside a model in the cache, and named on the command line", async (t) => {
  const cacheDir = await scratchFolder(t);
  const commit = commitOf("main");
  for (const name of ["seeing", "blind"]) {
    const repo = cacheRepo(cacheDir, `acme/${name}`);
    await repo.link(commit, `${name}-Q8_0.gguf`, modelBytes(talkingModel(name)));
    if (name === "seeing") await repo.link(commit, "mmproj-F16.gguf", projectorBytes());
    await repo.main(commit);
  }
  const { url } = await startLlamaServer(t, [], { HF_HUB_CACHE: cacheDir, HOME: cacheDir });
  const started = performance.now();
  const seen = await ask(url, "acme/seeing:Q8_0");
  t.diagnostic(`loaded and answered in ${Math.round(performance.now() - started)} ms`);
  assert.equal(seen.status, 200, seen.text);
  const { choices } = JSON.parse(seen.text) as { choices: [{ message: { content: string } }] };
  assert.equal(choices[0].message.content, answersOf("seeing").hello);
  const blind = await ask(url, "acme/blind:Q8_0");
  assert.equal(blind.status, 500);
  assert.match(blind.text, /image input is not supported/);

  const [model, projector] = [join(cacheDir, "m.gguf"), join(cacheDir, "p.gguf")];
  await writeFile(model, modelBytes(talkingModel("alone")));
  await writeFile(projector, projectorBytes());
  const alone = await startLlamaServer(t, ["-m", model, "--mmproj", projector]);
  assert.equal((await ask(alone.url, "any")).status, 200);
});
