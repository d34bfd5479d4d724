// A removal and what else is asked of the same model meanwhile: whoever is told that it is gone finds it gone, and only
// somebody who names it on purpose brings it back.
import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { test } from "node:test";
import { cacheTalker, makeFolders, makeTalkerFolders, talker } from "../support/folders.ts";
import { startTestGateway } from "../support/gateway.ts";
import { codeOf, contextLengths, messageOf } from "../support/own-calls.ts";
import { chatWith, patchWith, postWith } from "../support/requests.ts";
import { until } from "../support/scratch.ts";

test("while a removal waits for an answer, nothing takes it back but the model's name in the document", async (t) => {
  const folders = await makeTalkerFolders(t);
  const gateway = await startTestGateway(t, { folders });
  await gateway.converged();
  const answering = new AbortController();
  const stream = await fetch(`${gateway.url}/v1/chat/completions`, {
    ...chatWith(talker, "forever", { stream: true }),
    signal: answering.signal,
  });
  await stream.body?.getReader().read();

  const removing = gateway.json("/api/remove-model", postWith({ model: talker }));
  await until("it is marked", () => gateway.gateway.status().removals.length > 0);
  for (const [path, init] of [
    ["/api/set-ctx-size", postWith({ model: talker, ctx_size: 512 })],
    ["/v1/chat/completions", chatWith(talker, "hi", { num_ctx: 512 })],
    ["/api/copy", postWith({ source: talker, destination: "another" })],
  ] as const) {
    const answer = await gateway.json(path, init);
    assert.equal(answer.status, 404, `${path} ${JSON.stringify(answer.body)}`);
  }
  assert.equal(gateway.gateway.status().removals.length, 1);
  await gateway.json("/api/desired", patchWith({ models: { [talker]: {} } }));
  answering.abort();
  const answer = await removing;
  assert.deepEqual([answer.status, codeOf(answer)], [499, "cancelled"], JSON.stringify(answer.body));
  assert.match(messageOf(answer), /the document names it again/);
  await gateway.converged();
  assert.ok((await readFile(folders.talkerFile)).length > 0);
  assert.deepEqual(Object.keys(await contextLengths(gateway)), [talker]);
});

test("removals and context sizes of the same models at the same moment: what was removed stays away", async (t) => {
  const folders = await makeFolders(t);
  const repos = Array.from({ length: 4 }, (_, index) => `acme/m${index}`);
  const ids = await Promise.all(repos.map((repo) => cacheTalker(folders, repo)));
  const gateway = await startTestGateway(t, { folders, yaml: "version: 1\n" });
  await gateway.converged();
  for (const [round, id] of ids.entries()) {
    if (round % 3 === 0) await gateway.ask(id);
    const removing = gateway.json("/api/remove-model", postWith({ model: id }));
    // Again and again until the removal has answered: before it is noted, while it goes, and just after.
    let over = false;
    void removing.finally(() => {
      over = true;
    });
    const asking = async (): Promise<void> => {
      for (let last = false; !last; ) {
        last = over;
        const answer =
          round % 2 === 0
            ? await gateway.json("/api/set-ctx-size", postWith({ model: id, ctx_size: 512 + round }))
            : await gateway.json("/v1/chat/completions", chatWith(id, "hi", { num_ctx: 512 + round }));
        assert.ok([200, 404].includes(answer.status), `${id} ${JSON.stringify(answer.body)}`);
      }
    };
    const [removed] = await Promise.all([removing, asking()]);
    assert.deepEqual(
      [removed.status, removed.body["deleted_files"]],
      [200, 2],
      `${id} ${JSON.stringify(removed.body)}`,
    );
    const { document } = (await gateway.json("/api/desired")).body as { document: { models?: unknown[] } };
    assert.deepEqual(document.models ?? [], [], id);
    assert.ok(!(await readdir(folders.cacheDir)).includes(`models--acme--m${round}`), id);
  }
  await gateway.converged();
  assert.deepEqual((await gateway.json("/v1/models")).body["data"], []);
});
