// The history of a running gateway: who changed what and what became of it, drift, and the ways back.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { GenerationBody, HistoryBody } from "../../src/client/index.ts";
import { addKey } from "../../src/keys/key-changes.ts";
import { keyFileName } from "../../src/keys/key-file.ts";
import { runCommand } from "../support/command.ts";
import { cacheTalker, makeFolders } from "../support/folders.ts";
import { startTestGateway } from "../support/gateway.ts";
import { codeOf, messageOf } from "../support/own-calls.ts";
import { patchWith, postWith } from "../support/requests.ts";
import { until } from "../support/scratch.ts";

test("the history of a gateway", async (t) => {
  const folders = await makeFolders(t);
  const model = await cacheTalker(folders, "acme/alpha");
  const { key } = await addKey(join(folders.stateDir, keyFileName), {
    name: "ci",
    expiresAt: undefined,
    now: Date.now(),
  });
  const gateway = await startTestGateway(t, {
    folders,
    yaml: `version: 1\nmodels: [{ id: "${model}", ctxSize: 512 }]\n`,
  });
  const send = (path: string, init: RequestInit = {}): ReturnType<typeof gateway.json> =>
    gateway.json(path, {
      ...init,
      headers: { ...(init.headers as object), authorization: `Bearer ${key}`, "user-agent": "team-tool/7" },
    });
  const list = async (): Promise<HistoryBody> => (await send("/api/history")).body as unknown as HistoryBody;
  const command = (...args: string[]) => runCommand(t, folders, args, { GATEWAY_LICENSE_KEY: key });
  const outcome = (generation: number, wanted: string) =>
    until(`${generation} is ${wanted}`, async () =>
      (await list()).entries.find((entry) => entry.generation === generation && entry.outcome === wanted),
    );
  await gateway.converged();

  await t.test("a file's save and a call's change have their author, their fields and how long they took", async () => {
    const first = await outcome(1, "converged");
    assert.match(first.by, /^file:[0-9a-f]{12}$/);
    assert.deepEqual([first.key, first.peer, first.client, first.file?.revision], [null, null, null, null]);
    assert.match(first.file?.sha256 ?? "", /^[0-9a-f]{64}$/);
    await send("/api/desired?wait=true", patchWith({ models: { [model]: { ctxSize: 1024 } } }));
    const { by, key: name, peer, client, fields, ms } = await outcome(2, "converged");
    assert.deepEqual(
      [by, name, peer, client, fields],
      ["http:PATCH /api/desired", "ci", "127.0.0.1", "team-tool/7", [`models.${model}.ctxSize`]],
    );
    assert.ok(ms !== null && ms >= 0 && ms < 60_000, String(ms));
    const { body } = await send("/api/history/2");
    const { changes, document } = body as unknown as GenerationBody;
    assert.deepEqual(changes, [{ field: `models.${model}.ctxSize`, before: 512, after: 1024 }]);
    assert.deepEqual(document, { version: 1, models: [{ id: model, ctxSize: 1024 }] });
    const shown = await command("history", "2");
    assert.equal(shown.code, 0, shown.stderr);
    assert.match(shown.stdout, /^Generation 2, /);
    assert.ok(shown.stdout.includes("http:PATCH /api/desired (key ci, 127.0.0.1, team-tool/7)"), shown.stdout);
    assert.ok(shown.stdout.includes(`~ models.${model}.ctxSize: 512 → 1024`), shown.stdout);
  });

  await t.test(
    "what cannot be had is stuck, and says why; the next generation supersedes what is not in force",
    async () => {
      await send("/api/desired", patchWith({ models: { [model]: { draft: null, preset: { "no-such": 1 } } } }));
      await send("/api/desired?wait=true", patchWith({ suspend: true, models: { [model]: { ctxSize: 2048 } } }));
      const stuck = await outcome(3, "stuck");
      assert.match(stuck.problem ?? "", /suspend/);
      const { generation } = (await send("/api/desired", patchWith({ suspend: null }))).body;
      assert.equal(generation, 4);
      await outcome(4, "converged");
    },
  );

  await t.test("rollback makes a new generation of an earlier document", async () => {
    const tried = await send("/api/history/1/rollback?dryRun=true", { method: "POST" });
    assert.deepEqual([tried.status, tried.body["dryRun"]], [200, true]);
    assert.equal((await list()).generation, 4);
    const done = await command("rollback", "2");
    assert.deepEqual([done.code, done.stdout], [0, "Generation 5 has the document of generation 2.\n"], done.stderr);
    const { body } = await send("/api/desired");
    assert.deepEqual(body["document"], { version: 1, models: [{ id: model, ctxSize: 1024 }] });
    const entry = await outcome(5, "converged");
    assert.deepEqual([entry.by, entry.key], ["http:POST /api/history/2/rollback", "ci"]);
    assert.match(entry.client ?? "", /^model-gateway\/\S+ rollback$/);
    const again = await command("rollback", "5");
    assert.deepEqual([again.code, again.stdout], [0, "The document is that of generation 5 already.\n"]);
    const models = (await send("/v1/models")).body["data"] as { context_length: number }[];
    assert.equal(models[0]?.context_length, 1024);
  });

  await t.test("reset takes out what calls have set, and nothing else", async () => {
    await send("/api/desired?wait=true", patchWith({ context: { default: 768 }, prune: true }));
    const one = await command("reset", "context.default");
    assert.deepEqual(
      [one.code, one.stdout],
      [0, 'context: {"default":768} → none (was set by http:PATCH /api/desired)\n'],
    );
    const differs = async (): Promise<string[]> =>
      ((await send("/api/desired")).body["differsFromFile"] as { path: string }[]).map(({ path }) => path);
    assert.deepEqual(await differs(), [`models.${model}.ctxSize`, "prune"]);
    const wrong = await command("reset", "ctxSize");
    assert.equal(wrong.code, 1);
    assert.match(wrong.stderr, /ctxSize does not differ from the applied file; what does: models/);
    const all = await command("reset");
    assert.equal(all.code, 0, all.stderr);
    assert.deepEqual(await differs(), []);
    assert.deepEqual(await command("reset"), { code: 0, stdout: "The document is as the file has it.\n", stderr: "" });
  });

  await t.test("export prints the document as YAML that the gateway takes", async () => {
    await send(
      "/api/desired?wait=true",
      patchWith({ models: { [model]: { aliases: ["a: b"], preset: { temp: 0.5 } } } }),
    );
    await send(
      "/api/desired?wait=true",
      patchWith({ models: { [model]: { aliases: ["yes", "1e3"], preset: { temp: 0.5 } } } }),
    );
    const { body, headers } = await send("/api/desired");
    const exported = await command("export");
    assert.equal(exported.code, 0, exported.stderr);
    const put = await send("/api/desired", {
      method: "PUT",
      headers: { "content-type": "application/yaml" },
      body: exported.stdout,
    });
    assert.deepEqual([put.status, put.body["document"]], [200, body["document"]]);
    assert.equal(put.headers.get("etag"), headers.get("etag"));
  });

  await t.test("drift: what was changed outside, when it was noticed and mended", async () => {
    await gateway.converged();
    const path = join(folders.stateDir, "router.preset.ini");
    const before = (await list()).drifts.length;
    await writeFile(path, "[*]\noffline = true\n");
    const [drift] = await until("it is mended", async () => {
      const { drifts } = await list();
      return drifts.length > before && drifts[0]?.mendedAt !== null && drifts;
    });
    assert.ok(
      drift?.what.some(({ kind }) => kind === "preset.write"),
      JSON.stringify(drift),
    );
    assert.ok(Date.parse(drift?.mendedAt ?? "") >= Date.parse(drift?.at ?? ""));
    assert.match(await readFile(path, "utf8"), /ctx-size = 512/);
    assert.match((await command("history")).stdout, /\nDrift:\n.*mended after .*\n {2}.*preset/);
  });

  await t.test(
    "the table has the first digits of a commit, and a tag whole; the generation has all of it",
    async () => {
      const [commit, tag] = ["0123456789abcdef0123456789abcdef01234567", "release-2026-11"];
      for (const [prune, revision] of [
        [true, commit],
        [false, tag],
      ] as const)
        await send(`/api/desired?apply=true&wait=true&revision=${revision}`, {
          method: "PUT",
          headers: { "content-type": "application/yaml" },
          body: `version: 1\nprune: ${String(prune)}\nmodels: ["${model}"]\n`,
        });
      const { stdout } = await command("history");
      assert.match(stdout, /^\d+ +\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ  .*, revision 0123456\) /m);
      assert.match(stdout, /, revision release-2026-11\) /);
      const { generation } = await list();
      assert.match((await command("history", `${generation - 1}`)).stdout, new RegExp(`^  revision ${commit}$`, "m"));
    },
  );

  await t.test("what is wrong is refused, and changes nothing", async () => {
    const { generation } = await list();
    for (const [path, code] of [
      ["/api/history/99", "generation_not_found"],
      ["/api/history/x", "invalid_request"],
      ["/api/history/-1", "invalid_request"],
    ] as const)
      assert.equal(codeOf(await send(path)), code, path);
    for (const [path, init, code] of [
      ["/api/history/99/rollback", {}, "generation_not_found"],
      ["/api/history/1/rollback?dryrun=true", {}, "invalid_request"],
      ["/api/history/1/rollback", { headers: { "if-match": '"g0-x"' } }, "precondition_failed"],
      ["/api/desired/reset", postWith({ field: ["prune"] }), "invalid_request"],
      ["/api/desired/reset", postWith({ fields: [] }), "invalid_request"],
      ["/api/desired/reset", postWith({ fields: ["nothing"] }), "invalid_request"],
    ] as const) {
      const answer = await send(path, { method: "POST", ...init });
      assert.equal(codeOf(answer), code, `${path} ${messageOf(answer)}`);
    }
    assert.equal((await gateway.json("/api/history")).status, 401);
    assert.equal((await list()).generation, generation);
    // The document before the first change is kept; what made it is not.
    const first = await command("history", "0");
    assert.equal(first.code, 1);
    assert.match(
      first.stderr,
      /generation 0 is not in the history, which reaches from 1 to \d+\nUse a generation that `/,
    );
    assert.match((await command("rollback", "two")).stderr, /"two" is no generation/);
  });

  await t.test("the license key is in no file of the state folder, however it came", async () => {
    await gateway.json(`/k/${key}/api/desired`, patchWith({ pruneAfter: 61 }));
    await outcome((await list()).generation, "converged");
    const text = await readFile(join(folders.stateDir, "history.json"), "utf8");
    assert.ok(text.includes('"key":"ci"'));
    assert.ok(!text.includes(key));
  });
});
