// Models that embed and rank on the real engine: what each needs in the preset file, and that the gateway's own has it.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { createCacheScanner } from "../../src/cache/scan/scan.ts";
import { poolings } from "../../src/core/gguf-facts.ts";
import { emptyPreset } from "../../src/plan/preset-file.ts";
import { renderPreset } from "../../src/plan/render-preset.ts";
import { wantedSections } from "../../src/plan/wanted-preset.ts";
import { type CacheRepo, cacheRepo, commitOf } from "../support/cache-folder.ts";
import { encoderBytes } from "../support/encoder.ts";
import { startLlamaServer } from "../support/engine.ts";
import { answersOf, embeddingModel, modelBytes, talkingModel } from "../support/models.ts";
import { scratchFolder } from "../support/scratch.ts";
import { desiredFrom } from "../unit/plan/world.ts";

interface Answer {
  readonly status: number;
  readonly body: {
    readonly data?: readonly { readonly embedding: readonly number[] }[];
    readonly results?: readonly { readonly index: number; readonly relevance_score: number }[];
    readonly choices?: readonly { readonly message: { readonly content: string } }[];
    readonly error?: { readonly message: string };
  };
}
type Ask = (path: string, body: object) => Promise<Answer>;

async function askOf(t: TestContext, args: readonly string[], environment = {}): Promise<Ask> {
  const { url } = await startLlamaServer(t, args, environment);
  return async (path, body) => {
    const response = await fetch(url + path, {
      method: "POST",
      // The engine closes a connection after some answers, which a next request may find open.
      headers: { "content-type": "application/json", connection: "close" },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(300_000),
    });
    return { status: response.status, body: (await response.json()) as Answer["body"] };
  };
}

const vectorsIn = ({ body }: Answer) => (body.data ?? []).map(({ embedding }) => embedding);

function similarity(a: readonly number[] = [], b: readonly number[] = []): number {
  return a.reduce((sum, value, index) => sum + value * (b[index] ?? 0), 0);
}

const longText = "hello there my friend ".repeat(60);

test("the gateway's preset makes each model serve what it is for, without a word in the document", async (t) => {
  const cacheDir = await scratchFolder(t);
  const commit = commitOf("main");
  const add = async (name: string, bytes: Uint8Array): Promise<string> => {
    const repo: CacheRepo = cacheRepo(cacheDir, `acme/${name}`);
    await repo.link(commit, `${name}-Q8_0.gguf`, bytes);
    await repo.main(commit);
    return `acme/${name}:Q8_0`;
  };
  const mean = await add("mean", modelBytes(embeddingModel("mean")));
  const last = await add("last", modelBytes(embeddingModel("last", { pooling: "last" })));
  const bert = await add("bert", encoderBytes("bert"));
  const old = await add("old", encoderBytes("old", { pooling: null }));
  const ranker = await add("ranker", modelBytes(embeddingModel("ranker", { pooling: "rank" })));
  const talker = await add("talker", modelBytes(talkingModel("talker")));
  const both = await add("both", modelBytes(talkingModel("both")));

  const found = await createCacheScanner(cacheDir).scan();
  assert.ok(found.state === "known");
  const { models } = found.value;
  assert.equal(models.find((model) => model.id === mean)?.pooling, poolings.mean);
  assert.equal(models.find((model) => model.id === bert)?.architecture, "bert");
  const desired = desiredFrom({ models: [{ id: both, preset: { embeddings: "on" } }] });
  const preset = join(cacheDir, "router.preset.ini");
  await writeFile(
    preset,
    renderPreset(emptyPreset, wantedSections(desired, models, [], { knownOptions: null }, new Map()), null),
  );
  const ask = await askOf(t, ["--models-preset", preset], { HF_HUB_CACHE: cacheDir, HOME: cacheDir });

  for (const model of [mean, last, bert, old, both]) {
    const answer = await ask("/v1/embeddings", { model, input: ["a first text", "another one", "a first text"] });
    assert.equal(answer.status, 200, `${model}: ${JSON.stringify(answer.body)}`);
    const [first, second, again] = vectorsIn(answer);
    assert.equal(first?.length, 64);
    assert.ok(Math.abs(similarity(first, first) - 1) < 1e-3, "of length 1");
    assert.ok(similarity(first, again) > 0.999, `${model}: the same text has the same vector`);
    if (model !== last && model !== both)
      assert.ok(similarity(first, second) < 0.9999, `${model}: another has another`);
  }
  // 661 and more tokens: above the engine's own batch of 512, within ours; the last token's needs no such room.
  for (const model of [mean, last]) {
    const answer = await ask("/v1/embeddings", { model, input: longText });
    assert.equal(answer.status, 200, `${model}: ${JSON.stringify(answer.body)}`);
  }
  const ranked = await ask("/v1/rerank", { model: ranker, query: "a", documents: ["b", "c"] });
  assert.equal(ranked.body.results?.length, 2, JSON.stringify(ranked.body));

  const messages = [{ role: "user", content: "Hello" }];
  for (const [model, name] of [
    [talker, "talker"],
    [both, "both"],
  ] as const) {
    const { body } = await ask("/v1/chat/completions", { model, messages });
    assert.equal(body.choices?.[0]?.message.content, answersOf(name).hello, "talks all the same");
  }
  const refused = await ask("/v1/embeddings", { model: talker, input: "text" });
  assert.equal(refused.status, 501);
  assert.match(refused.body.error?.message ?? "", /does not support embeddings/);
  const mute = await ask("/v1/chat/completions", { model: bert, messages });
  assert.equal(mute.status, 500, "an encoder has no next token, and lives on");
  assert.equal((await ask("/v1/embeddings", { model: bert, input: "text" })).status, 200);
});
