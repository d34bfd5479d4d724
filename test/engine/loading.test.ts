// Loads that go another way than straight: the model sleeps, its name fits nowhere, its slots share the context.
import assert from "node:assert/strict";
import { test } from "node:test";
import { cacheModel, cacheTalker, makeFolders } from "../support/folders.ts";
import { startTestGateway } from "../support/gateway.ts";
import { answersOf, modelBytes, talkingModel } from "../support/models.ts";

test("a sleeping model wakes at the next request, and holds up no other", async (t) => {
  const folders = await makeFolders(t);
  const [sleeper, other] = [await cacheTalker(folders, "acme/sleeper"), await cacheTalker(folders, "acme/other")];
  const gateway = await startTestGateway(t, {
    folders,
    yaml: `version: 1\nmodels: [{ id: "${sleeper}", preset: { sleep-idle-seconds: 1 } }]\n`,
    flags: ["--preset-allow", "sleep-idle-seconds"],
  });
  await gateway.converged();
  await gateway.ask(sleeper);
  await gateway.until("asleep", () =>
    gateway.gateway.journal
      .since("0")
      .some((event) => event.type === "model" && JSON.stringify(event.data).includes("sleeping")),
  );
  assert.deepEqual(await Promise.all([gateway.ask(sleeper), gateway.ask(other)]), [
    answersOf("acme/sleeper").hello,
    answersOf("acme/other").hello,
  ]);
});

test("a file whose name the preset cannot hold is not offered, and is nobody's failure", async (t) => {
  const folders = await makeFolders(t);
  const model = await cacheTalker(folders, "acme/plain");
  await cacheModel(folders, "acme/odd", "we#ird.gguf", modelBytes(talkingModel("odd")));
  const gateway = await startTestGateway(t, { folders, yaml: "version: 1\n" });
  const status = await gateway.converged();
  assert.equal(status.health, "Healthy");
  const { body } = await gateway.json("/beta/v1/models");
  assert.deepEqual(
    (body["data"] as { id: string }[]).map((entry) => entry.id),
    [model],
  );
});

test("what the model's slots leave of its context is what the list says once that is known", async (t) => {
  const folders = await makeFolders(t);
  const model = await cacheTalker(folders, "acme/slots");
  const gateway = await startTestGateway(t, {
    folders,
    yaml: `version: 1\nmodels: [{ id: "${model}", ctxSize: 4096, preset: { parallel: 4 } }]\n`,
  });
  await gateway.converged();
  await gateway.ask(model);
  const { body } = await gateway.json("/beta/v1/models");
  assert.equal((body["data"] as { context_length: number }[])[0]?.context_length, 1024);
});
