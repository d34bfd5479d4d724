// By which names a model's files can be deleted: those that spell it out. Whatever is merely near deletes nothing, as the
// same call once more would find the next one.
import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { test } from "node:test";
import { cacheModel, cacheTalker, makeFolders } from "../support/folders.ts";
import { startTestGateway } from "../support/gateway.ts";
import { modelBytes, talkingModel } from "../support/models.ts";
import { codeOf, messageOf } from "../support/own-calls.ts";
import { patchWith, postWith } from "../support/requests.ts";

test("what deletes files takes whole names alone", async (t) => {
  const folders = await makeFolders(t);
  for (const file of ["foo-Q8_0.gguf", "foo-Q6_K.gguf", "foo-UD-Q6_K.gguf", "foo-XL-Q6_K.gguf"])
    await cacheModel(folders, "acme/foo", file, modelBytes(talkingModel(file)));
  const alpha = await cacheTalker(folders, "acme/alpha");
  const beta = await cacheTalker(folders, "acme/beta");
  const gateway = await startTestGateway(t, { folders, yaml: "version: 1\n" });
  await gateway.converged();
  const ids = async (): Promise<string[]> =>
    ((await gateway.json("/v1/models")).body["data"] as { id: string }[]).map(({ id }) => id);
  const remove = (model: string) => gateway.json("/api/remove-model", postWith({ model }));
  const deleted = async (model: string): Promise<{ status: number; text: string }> => {
    const answer = await fetch(`${gateway.url}/api/delete`, { ...postWith({ model }), method: "DELETE" });
    return { status: answer.status, text: await answer.text() };
  };
  const copy = (source: string, destination: string): Promise<{ status: number }> =>
    fetch(`${gateway.url}/api/copy`, postWith({ source, destination })).then(async (answer) => {
      await answer.body?.cancel();
      return answer;
    });
  const all = await ids();
  assert.equal(all.length, 6);

  await t.test("the end of a name, and a short one, delete nothing, and are told what may be meant", async () => {
    for (const name of [
      "acme/foo:Q6_K",
      "acme/foo:K",
      "acme/alpha",
      "alpha",
      "alpha:latest",
      "beta:Q8_0",
      "acme/foo",
    ]) {
      const answer = await remove(name);
      assert.deepEqual([answer.status, codeOf(answer)], [404, "model_not_found"], name);
      assert.equal((await deleted(name)).status, 404, name);
    }
    assert.match(messageOf(await remove("alpha")), /did you mean acme\/alpha:Q8_0/);
    assert.match(
      messageOf(await remove("acme/foo:Q6_K")),
      /did you mean acme\/foo:foo-Q6_K or acme\/foo:foo-UD-Q6_K or acme\/foo:foo-XL-Q6_K\?/,
    );
    assert.deepEqual(await ids(), all);
    // To unload a model by such a name costs nothing.
    assert.equal((await gateway.json("/api/eject-model", postWith({ model: "alpha" }))).status, 200);
  });

  await t.test("a name of one's own goes alone, and once", async () => {
    assert.equal((await copy(alpha, "alpha")).status, 200);
    const refused = await remove("Alpha:latest");
    assert.deepEqual([refused.status, codeOf(refused)], [404, "model_not_found"]);
    assert.match(messageOf(refused), /'Alpha:latest' is an alias of acme\/alpha:Q8_0/);
    // Both at once, and then once more.
    const answers = await Promise.all([deleted("alpha"), deleted("alpha")]);
    assert.deepEqual(answers.map(({ status }) => status).toSorted(), [200, 404]);
    const { status, text } = await deleted("alpha");
    assert.deepEqual([status, text.includes("did you mean acme/alpha:Q8_0?")], [404, true], text);
    assert.deepEqual(await ids(), all);
  });

  await t.test("no name of one model's file can be given to another", async () => {
    for (const name of [beta, "acme/beta:model-Q8_0.gguf"]) assert.equal((await copy(alpha, name)).status, 400, name);
    assert.equal((await copy(beta, "acme/beta:model-Q8_0")).status, 200);
    assert.deepEqual((await gateway.json("/api/desired")).body["document"], { version: 1, models: [alpha] });
  });

  await t.test("the id, the file's name and the router's name delete that file, once", async () => {
    for (const name of ["ACME/FOO:q8_0", "acme/foo:FOO_UD_Q6_K", "acme/foo:foo-XL-Q6_K.gguf:latest"]) {
      const answer = await remove(name);
      assert.deepEqual([answer.status, answer.body["deleted_files"]], [200, 2], name);
      assert.equal((await remove(name)).status, 404, name);
    }
    assert.deepEqual(await ids(), [alpha, beta, "acme/foo:foo-Q6_K"]);
    assert.equal((await deleted("acme/beta:model-Q8_0.gguf")).status, 200);
    assert.equal((await deleted(beta)).status, 404);
    assert.deepEqual((await readdir(folders.cacheDir)).toSorted(), ["models--acme--alpha", "models--acme--foo"]);
  });

  await t.test("the id by which the document has it deletes it, once", async () => {
    await gateway.json("/api/desired?wait=true", patchWith({ models: { "acme/foo:Q6_K": {} } }));
    assert.equal((await remove("acme/foo:Q6_K")).status, 200);
    assert.equal((await remove("acme/foo:Q6_K")).status, 404);
    assert.deepEqual(await ids(), [alpha]);
  });
});
