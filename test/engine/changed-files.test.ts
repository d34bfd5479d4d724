// Files that change behind the gateway's back, with the real engine: sources that people write to, blobs that a disk loses.
import assert from "node:assert/strict";
import { readFile, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { sha256 } from "../support/cache-folder.ts";
import { makeFolders } from "../support/folders.ts";
import { startTestGateway, type TestGateway } from "../support/gateway.ts";
import { startLoopbackHub } from "../support/loopback-hub.ts";
import { answersOf, modelBytes, talkingModel } from "../support/models.ts";
import { chatWith } from "../support/requests.ts";

const own = "local/own:Q8_0";

function conditionOf(gateway: TestGateway, id: string, type: string): string {
  const found = gateway.gateway
    .status()
    .models.find((model) => model.id === id)
    ?.conditions.find((condition) => condition.type === type);
  return `${found?.status} ${found?.reason}`;
}

test("a source that is edited, by content or by name, is what answers; one that is gone takes nothing away", async (t) => {
  const folders = await makeFolders(t);
  const put = (file: string, name: string): Promise<void> =>
    writeFile(join(folders.stateDir, file), modelBytes(talkingModel(name)));
  const documentOf = (file: string): string => `version: 1\nmodels: [{ id: "${own}", source: ./${file} }]\n`;
  await put("one-Q8_0.gguf", "one");
  await put("two-Q8_0.gguf", "two");
  const gateway = await startTestGateway(t, { folders, yaml: documentOf("one-Q8_0.gguf") });
  await gateway.converged();
  assert.equal(await gateway.ask(own), answersOf("one").hello);

  // While it is loaded: the router itself would go on with the old content.
  await put("one-Q8_0.gguf", "another");
  await gateway.until("imported again", ({ planned, running }) => planned.length + running.length > 0);
  await gateway.converged();
  assert.equal(await gateway.ask(own), answersOf("another").hello);

  await folders.writeConfig(documentOf("two-Q8_0.gguf"));
  await gateway.until("read", ({ generation }) => generation === 2);
  await gateway.converged();
  assert.equal(await gateway.ask(own), answersOf("two").hello);

  await rm(join(folders.stateDir, "two-Q8_0.gguf"));
  await gateway.until("missed", () => conditionOf(gateway, own, "Applied") === "False SourceMissing");
  assert.equal(gateway.gateway.status().sync, "OutOfSync");
  assert.equal(await gateway.ask(own), answersOf("two").hello);

  // What is no model is refused for good, until the file is another one.
  await writeFile(join(folders.stateDir, "two-Q8_0.gguf"), "no model");
  await gateway.until("refused", ({ conditions }) => conditions.some(({ reason }) => reason === "InvalidModelFile"));
  assert.equal(await gateway.ask(own), answersOf("two").hello);
  await put("two-Q8_0.gguf", "three");
  await gateway.until("imported", ({ sync }) => sync === "Synced");
  assert.equal(await gateway.ask(own), answersOf("three").hello);
});

test("a damaged model is fetched again, whether its size or a failed load tells, and is not called verified", async (t) => {
  const hub = await startLoopbackHub(t);
  const bytes = Buffer.from(modelBytes(talkingModel("pulled")));
  hub.addRepo("acme/pulled", { files: { "pulled-Q8_0.gguf": bytes } });
  const id = "acme/pulled:Q8_0";
  const gateway = await startTestGateway(t, {
    yaml: `version: 1\nmodels: ["${id}"]\n`,
    environment: { HF_ENDPOINT: hub.endpoint },
  });
  const blob = join(gateway.cacheDir, "models--acme--pulled", "blobs", sha256(bytes));
  await gateway.converged();
  assert.equal(conditionOf(gateway, id, "Verified"), "True ChecksumMatched");
  const damage = {
    "a failed load": async () => {
      // In place: a file that is empty for a moment is found to be so by its size.
      await writeFile(blob, Buffer.from(bytes).fill(0, 0, 1000), { flag: "r+" });
      const response = await fetch(`${gateway.url}/v1/chat/completions`, chatWith(id));
      assert.equal(response.status, 500, await response.text());
    },
    "its size": async () => {
      await gateway.json("/api/eject-model", {
        method: "POST",
        body: JSON.stringify({ model: id }),
        headers: { "content-type": "application/json" },
      });
      await truncate(blob, 2000);
    },
  };
  for (const [how, harm] of Object.entries(damage)) {
    const held = hub.throttle("pulled-Q8_0.gguf", 100_000);
    await harm();
    await held.reached;
    const reasons = ["Present", "Verified"].map((type) => conditionOf(gateway, id, type));
    assert.deepEqual(reasons, ["False Pulling", "False Damaged"], how);
    held.release();
    await gateway.converged();
    assert.equal(conditionOf(gateway, id, "Verified"), "True ChecksumMatched");
    assert.deepEqual(await readFile(blob), bytes, how);
    assert.equal(await gateway.ask(id), answersOf("pulled").hello);
  }
});
