// Files of models that change under the gateway: sources that are written to, blobs that are damaged.
import assert from "node:assert/strict";
import { readFile, rename, rm, truncate, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { toDesired, toTree } from "../../../src/desired/document/document.ts";
import { readDocumentFiles } from "../../../src/observe/document-files.ts";
import { acting, eight, files, repo } from "../../support/acting.ts";
import { modelHead, sha256 } from "../../support/cache-folder.ts";
import { scratchFolder } from "../../support/scratch.ts";

const local = "local/x:Q8_0";

describe("a source", () => {
  it("is known by its path, its size and its time, with all its shards", async (t) => {
    const root = await scratchFolder(t);
    const document = toDesired(
      toTree({
        version: 1,
        models: [
          { id: "local/a:Q8_0", source: "./a.gguf" },
          { id: "local/b:Q8_0", source: "b-00001-of-00002.gguf" },
          { id: "local/c:Q8_0", source: "none.gguf" },
          "acme/d:Q8_0",
        ],
      }),
    );
    for (const name of ["a.gguf", "b-00001-of-00002.gguf", "b-00002-of-00002.gguf"])
      await writeFile(join(root, name), name);
    const look = async () => (await readDocumentFiles(join(root, "gateway.yaml"), document)).sources;
    const first = await look();
    assert.deepEqual([...first.keys()], ["./a.gguf", "b-00001-of-00002.gguf", "none.gguf"]);
    assert.deepEqual(
      [...first.values()].map(({ path, stamp }) => [path, stamp !== null]),
      [
        [join(root, "a.gguf"), true],
        [join(root, "b-00001-of-00002.gguf"), true],
        [join(root, "none.gguf"), false],
      ],
    );
    assert.deepEqual(await look(), first);
    await utimes(join(root, "a.gguf"), 1, 1);
    assert.notEqual((await look()).get("./a.gguf")?.stamp, first.get("./a.gguf")?.stamp);
    await rm(join(root, "b-00002-of-00002.gguf"));
    assert.equal((await look()).get("b-00001-of-00002.gguf")?.stamp, null);
  });

  it("whose time alone has changed is noted, and ends nobody's model", async (t) => {
    const { root, act, inventory, drained, cached } = await acting(t);
    const source = join(root, "local-Q8_0.gguf");
    await writeFile(source, modelHead("one"));
    await act("model.import", local, "./local-Q8_0.gguf");
    const [before] = await cached();
    const noted = inventory.get(local);
    await utimes(source, 1, 1);
    assert.equal((await act("model.import", local, "./local-Q8_0.gguf")).error, null);
    assert.deepEqual([await cached(), drained], [[before], []]);
    const after = inventory.get(local);
    assert.notEqual(after?.source?.stamp, noted?.source?.stamp);
    assert.deepEqual({ ...after, source: noted?.source }, noted);
  });

  it("with other content, or elsewhere, takes the place of the old one once its process has ended", async (t) => {
    const { root, act, inventory, drained, cached } = await acting(t);
    const contents = { "a-Q8_0.gguf": "one", "a-Q8_0.gguf again": "two", "bb-Q8_0.gguf": "three" };
    for (const [name, content] of Object.entries(contents)) {
      const [file = ""] = name.split(" ");
      await writeFile(join(root, file), modelHead(content));
      drained.length = 0;
      assert.equal((await act("model.import", local, file)).error, null);
      const models = await cached();
      assert.deepEqual(
        models.map(({ id }) => id),
        [local],
        name,
      );
      assert.deepEqual(await readFile(models[0]?.files[0] ?? ""), modelHead(content));
      assert.equal(inventory.get(local)?.source?.path, join(root, file));
      assert.deepEqual(drained, content === "one" ? [] : [local, `ended ${local}`, "let in"], name);
    }
    for (const shard of ["00001", "00002"]) await writeFile(join(root, `c-${shard}-of-00002.gguf`), modelHead(shard));
    await act("model.import", local, "c-00001-of-00002.gguf");
    assert.deepEqual(
      (await cached()).map(({ id, files: own, complete }) => [id, own.length, complete]),
      [[local, 2, true]],
    );
  });

  it("that is no model any more leaves the old one as it is", async (t) => {
    const { root, act, drained, cached } = await acting(t);
    await writeFile(join(root, "a-Q8_0.gguf"), modelHead("one"));
    await act("model.import", local, "a-Q8_0.gguf");
    const before = await cached();
    await writeFile(join(root, "a-Q8_0.gguf"), "half a file");
    assert.equal((await act("model.import", local, "a-Q8_0.gguf")).error?.code, "not_a_model");
    assert.deepEqual([await cached(), drained], [before, []]);
  });
});

describe("a damaged file", () => {
  const bytes = files["demo-Q8_0.gguf"];
  const blob = (cacheDir: string): string =>
    join(cacheDir, `models--${repo.replace("/", "--")}`, "blobs", sha256(bytes));

  it("of another size is seen by the scan, and fetched again", async (t) => {
    const { hub, act, cached, cacheDir } = await acting(t);
    hub.addRepo(repo, { files });
    await act("model.pull", eight);
    await truncate(blob(cacheDir), 50);
    const [model] = await cached();
    assert.deepEqual(
      [model?.complete, model?.damage],
      [false, `demo-Q8_0.gguf has 50 bytes instead of ${bytes.length}`],
    );
    assert.equal((await act("model.pull", eight, "", true)).error, null);
    const [again] = await cached();
    assert.deepEqual([again?.complete, again?.damage, await readFile(blob(cacheDir))], [true, null, bytes]);
  });

  it("of the same size is found by hashing it, once, and fetched again", async (t) => {
    const { hub, act, cached, cacheDir, damage, drained } = await acting(t);
    hub.addRepo(repo, { files });
    await act("model.pull", eight);
    const [whole] = await cached();
    assert.ok(whole);
    assert.equal(await damage.check(whole), false);
    await writeFile(blob(cacheDir), Buffer.from(bytes).fill(0, 100));
    const [unseen] = await cached();
    assert.ok(unseen);
    assert.deepEqual([unseen.complete, unseen.damage], [true, null]);
    assert.equal(await damage.check(unseen), true);
    assert.equal(await damage.check(unseen), false);
    const [seen] = await cached();
    assert.deepEqual([seen?.complete, seen?.damage], [false, "demo-Q8_0.gguf is not what its checksum says"]);
    assert.equal((await act("model.pull", eight, "", true)).error, null);
    const [again] = await cached();
    assert.deepEqual([again?.complete, again?.damage, await readFile(blob(cacheDir))], [true, null, bytes]);
    assert.deepEqual(drained, [eight, `ended ${eight}`, "let in"]);
  });

  it("that is no link is known by what was stored there", async (t) => {
    const { hub, act, cached, cacheDir, damage } = await acting(t);
    hub.addRepo(repo, { files });
    await act("model.pull", eight);
    const place = (await cached())[0]?.files[0] ?? "";
    await rm(place);
    await rename(blob(cacheDir), place);
    await writeFile(place, Buffer.from(bytes).fill(0, 100));
    const [model] = await cached();
    assert.ok(model);
    assert.deepEqual([model.complete, model.blobs], [true, [null]]);
    assert.equal(await damage.check(model), true);
    assert.equal((await cached())[0]?.complete, false);
    await truncate(place, 10);
    assert.match((await cached())[0]?.damage ?? "", /has 10 bytes/);
  });

  it("of an imported model is copied anew", async (t) => {
    const { root, act, cached, damage } = await acting(t);
    await writeFile(join(root, "a-Q8_0.gguf"), modelHead("one"));
    await act("model.import", local, "a-Q8_0.gguf");
    const place = (await cached())[0]?.files[0] ?? "";
    await writeFile(place, modelHead("two"));
    const [model] = await cached();
    assert.ok(model && (await damage.check(model)));
    assert.equal((await act("model.import", local, "a-Q8_0.gguf", true)).error, null);
    assert.deepEqual([(await cached())[0]?.complete, await readFile(place)], [true, modelHead("one")]);
  });
});
