// Removing what this gateway stored, and nothing that another program put beside it or made of it.
import assert from "node:assert/strict";
import { mkdir, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { commitOf, modelHead, sha256 } from "../../../support/cache-folder.ts";
import { removalCache as cache, eight, four, main, old } from "../../../support/removing.ts";
import { scratchFolder } from "../../../support/scratch.ts";

describe("removing what was stored here", () => {
  it("takes its links and blobs, in a folder too, and nothing is left", async (t) => {
    const { cacheDir, repo, removeStored: removed } = await cache(t);
    await repo.link(main, "Q8_0/demo-Q8_0.gguf", eight);
    await repo.link(old, "Q8_0/demo-Q8_0.gguf", eight);
    const files = { "Q8_0/demo-Q8_0.gguf": eight };
    assert.deepEqual(await removed(files, [main, old]), { deletedFiles: 3, freedBytes: eight.length });
    assert.deepEqual(await readdir(cacheDir), []);
    assert.deepEqual(await removed(files, [main, old]), { deletedFiles: 0, freedBytes: 0 });
  });

  it("leaves the same name with other content, and the same content in a revision of another program", async (t) => {
    const { repo, removeStored: removed, world } = await cache(t);
    const theirs = modelHead("theirs");
    await repo.link(main, "demo-Q8_0.gguf", eight);
    await repo.link(old, "demo-Q8_0.gguf", theirs);
    await writeFile(join(repo.root, "refs", "v1"), old);
    const files = { "demo-Q8_0.gguf": eight };
    assert.deepEqual(await removed(files, [main, old]), { deletedFiles: 2, freedBytes: eight.length });
    const left = [`blobs/${sha256(theirs)}`, "refs/v1", `snapshots/${old}/demo-Q8_0.gguf`].sort();
    assert.deepEqual(await world(), left);

    // Their snapshot shows our blob: it is theirs too by now.
    await repo.link(main, "demo-Q8_0.gguf", eight);
    await repo.link(commitOf("theirs"), "demo-Q8_0.gguf", eight);
    assert.deepEqual(await removed(files, [main, old]), { deletedFiles: 1, freedBytes: 0 });
    assert.deepEqual(
      await world(),
      [...left, `blobs/${sha256(eight)}`, `snapshots/${commitOf("theirs")}/demo-Q8_0.gguf`].sort(),
    );
  });

  it("leaves what a person put into its place: a file of another size, a link elsewhere, a folder that is a link", async (t) => {
    const { repo, removeStored: removed, world } = await cache(t);
    const files = { "sub/demo-Q8_0.gguf": eight };
    const elsewhere = await scratchFolder(t);
    await writeFile(join(elsewhere, "demo-Q8_0.gguf"), eight);
    const place = join(repo.root, "snapshots", main, "sub");
    await mkdir(join(place, ".."), { recursive: true });
    await symlink(elsewhere, place);
    assert.equal((await removed(files, [main])).deletedFiles, 0);
    assert.deepEqual(await readdir(elsewhere), ["demo-Q8_0.gguf"]);
    await rm(place);
    await mkdir(place);
    await symlink(join(elsewhere, "demo-Q8_0.gguf"), join(place, "demo-Q8_0.gguf"));
    assert.equal((await removed(files, [main])).deletedFiles, 0);
    await rm(join(place, "demo-Q8_0.gguf"));
    await repo.plain(main, "sub/demo-Q8_0.gguf", four.subarray(1));
    assert.equal((await removed(files, [main])).deletedFiles, 0);
    assert.deepEqual(await world(), ["refs/main", `snapshots/${main}/sub/demo-Q8_0.gguf`]);
    // As it is stored where there are no links.
    await repo.plain(main, "sub/demo-Q8_0.gguf", eight);
    assert.deepEqual(await removed(files, [main]), { deletedFiles: 1, freedBytes: eight.length });
  });
});
