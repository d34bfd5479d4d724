// The commands with which a deploy tool works, against a running gateway.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { runCommand } from "../support/command.ts";
import { cacheTalker, makeFolders } from "../support/folders.ts";
import { startTestGateway } from "../support/gateway.ts";

test("diff", async (t) => {
  const folders = await makeFolders(t);
  const model = await cacheTalker(folders, "acme/alpha");
  const yaml = `version: 1\nmodels: ["${model}"]\n`;
  const gateway = await startTestGateway(t, { folders, yaml });
  const run = (args: readonly string[], input?: string) => runCommand(t, folders, ["diff", ...args], {}, input);

  await t.test("without a difference: 0", async () => {
    const same = await run(["-f", folders.configPath]);
    assert.deepEqual([same.code, same.stdout], [0, `${folders.configPath} is the document of the gateway.\n`]);
  });

  await t.test("per field, of standard input: 2; nothing is changed", async () => {
    const text = `version: 1\ncontext: { default: 1024 }\nmodels:\n  - id: ${model}\n    preset: { top-k: 4 }\n`;
    const { code, stdout } = await run(["-f", "-"], text);
    assert.equal(code, 2);
    assert.equal(stdout, `+ models.${model}.preset:\n+   top-k: 4\n+ context:\n+   default: 1024\n`);
    const { generation } = gateway.gateway.status();
    const asJson = await run(["-f", "-", "--json"], text);
    assert.deepEqual(
      [asJson.code, JSON.parse(asJson.stdout)],
      [
        2,
        {
          generation,
          changes: [
            { path: `models.${model}.preset`, from: null, to: { "top-k": 4 } },
            { path: "context", from: null, to: { default: 1024 } },
          ],
        },
      ],
    );
    assert.equal(gateway.gateway.status().generation, generation);
  });

  await t.test("what a client has set is a difference from the file", async () => {
    await gateway.json("/api/set-ctx-size", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model, ctx_size: 768 }),
    });
    const { code, stdout } = await run(["-f", folders.configPath]);
    assert.deepEqual([code, stdout], [2, `- models.${model}.ctxSize: 768\n`]);
  });

  await t.test("a document that is none, and none at all: 1", async () => {
    const bad = join(folders.root, "bad.yaml");
    await writeFile(bad, "version: 1\nmodls: []\nprune: 5\n");
    const { code, stdout, stderr } = await run(["-f", bad]);
    assert.deepEqual([code, stdout], [1, ""]);
    assert.equal(stderr, `${bad}:2:1: modls: unknown key (did you mean models?)\n${bad}:3:8: prune: must be boolean\n`);
    assert.match((await run([])).stderr, /name the document with -f FILE/);
    assert.match((await run(["-f", join(folders.root, "none")])).stderr, /there is no /);
  });
});
