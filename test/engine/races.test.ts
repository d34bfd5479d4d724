// Changes and requests at the same moment: every answer is whole, every change is in force.
import assert from "node:assert/strict";
import { test } from "node:test";
import { cacheTalker, makeFolders } from "../support/folders.ts";
import { startTestGateway } from "../support/gateway.ts";
import { answersOf } from "../support/models.ts";
import { patchWith } from "../support/requests.ts";

test("chats and context changes on the same models, all at once", async (t) => {
  const folders = await makeFolders(t);
  const ids = await Promise.all(["acme/a", "acme/b", "acme/c"].map((repo) => cacheTalker(folders, repo)));
  const gateway = await startTestGateway(t, { folders, yaml: "version: 1\n", flags: ["--models-max", "2"] });
  await gateway.converged();
  const sizes = [512, 768, 1024, 1280, 1536];
  const work: Promise<void>[] = [];
  for (const [round, size] of sizes.entries()) {
    for (const id of ids) {
      work.push(gateway.ask(id).then((text) => assert.equal(text, answersOf(id.slice(0, id.indexOf(":"))).hello)));
      if ((round + ids.indexOf(id)) % 2 === 0) continue;
      const change = patchWith({ models: { [id]: { ctxSize: size } } });
      work.push(gateway.json("/api/desired?wait=true", change).then(({ status }) => assert.equal(status, 200)));
    }
    // The next round arrives while this one is being worked on.
    await work[work.length - 2];
  }
  await Promise.all(work);
  await gateway.converged();
  const { body } = await gateway.json("/beta/v1/models");
  assert.deepEqual(
    (body["data"] as { context_length: number }[]).map((model) => model.context_length),
    [1280, 1536, 1280],
  );
  assert.equal(gateway.gateway.status().router.crashes, 0);
});

test("a hundred changes in one breath cost one reload of a loaded model, and the last one is in force", async (t) => {
  const folders = await makeFolders(t);
  const id = await cacheTalker(folders, "acme/a");
  const gateway = await startTestGateway(t, { folders, yaml: "version: 1\n" });
  await gateway.converged();
  await gateway.ask(id);
  const made: number[] = [performance.now()];
  const change = async (size: number): Promise<void> => {
    await gateway.json("/api/desired", patchWith({ models: { [id]: { ctxSize: size } } }));
    made.push(performance.now());
  };
  for (let batch = 0; batch < 10; batch++)
    await Promise.all(Array.from({ length: 10 }, (_, index) => change(512 + batch * 10 + index)));
  await change(2048);
  // A breath ends with a pause of 100 ms, and after 2 s: on a busy machine they may be several.
  const pauses = made.filter((at, index) => at - (made[index - 1] ?? at) > 60).length;
  const breaths = 1 + pauses + Math.floor(((made.at(-1) ?? 0) - (made[0] ?? 0)) / 2_000);
  await gateway.until("in force", (status) => status.generation >= 1 && status.sync === "Synced");
  const { body } = await gateway.json("/beta/v1/models");
  assert.equal((body["data"] as { context_length: number }[])[0]?.context_length, 2048);
  const reloads = gateway.gateway.journal
    .since("0")
    .filter((event) => event.type === "action.finished" && JSON.stringify(event.data).includes("router.reload"));
  assert.ok(reloads.length >= 1 && reloads.length <= breaths, `${reloads.length} reloads in ${breaths} breaths`);
});
