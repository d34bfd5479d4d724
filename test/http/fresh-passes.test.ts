// Answers that are true of now: the file is read first, the world is observed anew, and nothing says two things of the file.
import assert from "node:assert/strict";
import { readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { cacheTalker, makeFolders } from "../support/folders.ts";
import { startTestGateway } from "../support/gateway.ts";
import { codeOf } from "../support/own-calls.ts";
import { patchWith } from "../support/requests.ts";
import { until } from "../support/scratch.ts";

test("plan, reconcile and dry run beside a file and a cache that change", async (t) => {
  const folders = await makeFolders(t);
  const model = await cacheTalker(folders, "acme/alpha");
  const gateway = await startTestGateway(t, { folders, yaml: `version: 1\nmodels: ["${model}"]\n` });
  await gateway.converged();

  await t.test(
    "reconcile applies what was saved before it, and both reports of the file agree throughout",
    async () => {
      const contradictions: unknown[] = [];
      const stop = gateway.gateway.journal.follow(() => {
        const { source, conditions } = gateway.gateway.status();
        const valid = conditions.find((entry) => entry.type === "SourceValid")?.status;
        if ((valid === "True") !== source.valid) contradictions.push([valid, source.valid]);
      });
      for (const ctxSize of [2048, 512, 1024]) {
        await gateway.writeConfig(`version: 1\nmodels: [{ id: "${model}", ctxSize: ${ctxSize} }]\n`);
        const { body } = await gateway.json("/api/reconcile?wait=true", { method: "POST" });
        assert.equal(body["converged"], true);
        const text = await readFile(join(folders.stateDir, "router.preset.ini"), "utf8");
        assert.match(text, new RegExp(`^ctx-size = ${ctxSize}$`, "m"));
        await gateway.writeConfig("version: 2\n");
        const broken = await gateway.json("/api/reconcile?wait=true", { method: "POST" });
        assert.deepEqual(
          [broken.body["converged"], (broken.body["source"] as { valid: boolean }).valid],
          [false, false],
        );
      }
      stop();
      assert.deepEqual(contradictions, []);
    },
  );

  await t.test(
    "a dry run goes by If-Match, and the first step names the answers that the reload after it ends",
    async () => {
      const patch = patchWith({ models: { [model]: { ctxSize: 256 } } });
      const stale = await gateway.json("/api/desired?dryRun=true", {
        ...patch,
        headers: { "content-type": "application/json", "if-match": '"g1-0"' },
      });
      assert.deepEqual([stale.status, codeOf(stale)], [412, "precondition_failed"]);
      await gateway.ask(model);
      await gateway.json("/api/plan");
      const { body } = await gateway.json("/api/desired?dryRun=true", patch);
      assert.deepEqual(
        (body["actions"] as { kind: string; disrupts: unknown }[]).map(({ kind, disrupts }) => [kind, disrupts]),
        [["preset.write", [model]]],
      );
    },
  );

  await t.test("a plan sees what went and what is back, and says of which file and folder it is", async () => {
    const repo = join(folders.cacheDir, "models--acme--alpha");
    const planned = async (): Promise<unknown[]> => {
      const { body } = await gateway.json("/api/plan");
      const lists = [body["actions"], body["running"], body["held"]] as { kind: string }[][];
      return lists.flat().map(({ kind }) => kind);
    };
    await rename(repo, `${repo}.away`);
    assert.ok((await planned()).includes("model.pull"));
    await rename(`${repo}.away`, repo);
    // The pull that has begun meanwhile ends by itself.
    await until("nothing is missing", async () => !(await planned()).includes("model.pull"));
    await gateway.writeConfig("version: 3\n");
    const { body } = await gateway.json("/api/plan");
    const source = body["source"] as { valid: boolean; message: string };
    assert.deepEqual([source.valid, body["stateDir"]], [false, folders.stateDir]);
    assert.match(source.message, /gateway\.yaml:1:10: version: must be 1/);
  });
});
