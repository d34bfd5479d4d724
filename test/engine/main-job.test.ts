// The main job, whole: one edit of gateway.yaml adds a model, changes another's context while a stream runs on a third,
// and removes a fourth; the router is killed in the middle; the end state is as written, and the stream is whole.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { cacheModel, makeTalkerFolders } from "../support/folders.ts";
import { startTestGateway, streamChat } from "../support/gateway.ts";
import { startLoopbackHub } from "../support/loopback-hub.ts";
import { answersOf, modelBytes, talkingModel } from "../support/models.ts";
import { chatWith } from "../support/requests.ts";

test("an edit is carried out through a killed router, and a stream on another model stays whole", async (t) => {
  const hub = await startLoopbackHub(t);
  hub.addRepo("acme/added", { files: { "added-Q4_K_M.gguf": modelBytes(talkingModel("added")) } });
  hub.addRepo("acme/leaving", { files: { "leaving-Q8_0.gguf": modelBytes(talkingModel("leaving")) } });
  const folders = await makeTalkerFolders(t);
  await cacheModel(folders, "acme/resized", "resized-Q8_0.gguf", modelBytes(talkingModel("resized")));
  const gateway = await startTestGateway(t, {
    folders,
    environment: { HF_ENDPOINT: hub.endpoint },
    yaml: `version: 1
prune: true
pruneAfter: 0
models:
  - { id: "acme/talker:Q8_0", preset: { threads: 1 } }
  - acme/resized:Q8_0
  - acme/leaving:Q8_0
`,
  });
  await gateway.converged();
  assert.equal(await gateway.ask("acme/leaving:Q8_0"), answersOf("leaving").hello);
  assert.equal(await gateway.ask("acme/resized:Q8_0"), answersOf("resized").hello);
  const firstRouter = gateway.gateway.status().router.pid ?? 0;

  let edited: Promise<void> | null = null;
  let killed = false;
  let pieces = 0;
  const stream = streamChat(gateway.url, "acme/talker:Q8_0", "long", () => {
    pieces++;
    if (pieces === 10) {
      edited = gateway.writeConfig(`version: 1
prune: true
pruneAfter: 0
models:
  - { id: "acme/talker:Q8_0", preset: { threads: 1 } }
  - id: acme/resized:Q8_0
    ctxSize: 1536
  - acme/added:Q4_K_M
`);
    }
    if (pieces === 40) {
      killed = true;
      process.kill(firstRouter, "SIGKILL");
    }
  });
  const answer = await stream;
  await edited;
  assert.ok(killed);
  assert.deepEqual(answer, { text: answersOf("talker").long, done: true, error: null });

  const status = await gateway.until(
    "as written",
    (now) => now.generation === 2 && now.sync === "Synced" && now.router.pid !== firstRouter,
  );
  assert.equal(status.router.crashes, 1);
  const { body } = await gateway.json("/beta/v1/models");
  const models = (body["data"] as { id: string; context_length: number }[]).map(({ id, context_length }) => [
    id,
    context_length,
  ]);
  assert.deepEqual(models, [
    ["acme/added:Q4_K_M", 8192],
    ["acme/resized:Q8_0", 1536],
    ["acme/talker:Q8_0", 8192],
  ]);
  assert.equal(await gateway.ask("acme/added:Q4_K_M"), answersOf("added").hello);
  assert.equal(await gateway.ask("acme/resized:Q8_0"), answersOf("resized").hello);
  assert.equal((await gateway.json("/beta/v1/chat/completions", chatWith("acme/leaving:Q8_0"))).status, 404);
  const preset = await readFile(join(folders.stateDir, "router.preset.ini"), "utf8");
  assert.match(preset, /\[acme\/resized:Q8_0\]\n.*\nctx-size = 1536\nhf-repo = acme\/resized:Q8_0\n/);
});
