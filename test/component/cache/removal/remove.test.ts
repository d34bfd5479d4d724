// Removing a model: every link of it, every blob that nothing else links, and nothing more; also after a crash.
import assert from "node:assert/strict";
import { link, lstat, mkdir, readdir, readFile, readlink, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { holdPaths } from "../../../../src/cache/download/in-use.ts";
import { partialPath } from "../../../../src/cache/layout/layout.ts";
import { cacheRepo, commitOf, modelHead, sha256 } from "../../../support/cache-folder.ts";
import { removalCache as cache, eight, four, main, old, repoName } from "../../../support/removing.ts";
import { refusal, scratchFolder } from "../../../support/scratch.ts";

describe("removing a model", () => {
  it("takes its link and its blob, and leaves the other quant", async (t) => {
    const { repo, remove, world } = await cache(t);
    const path = await repo.link(main, "demo-Q8_0.gguf", eight);
    await repo.link(main, "demo-Q4_0.gguf", four);
    assert.deepEqual(await remove([path]), { deletedFiles: 2, freedBytes: eight.length });
    assert.deepEqual(await world(), [`blobs/${sha256(four)}`, "refs/main", `snapshots/${main}/demo-Q4_0.gguf`].sort());
    assert.deepEqual(await remove([path]), { deletedFiles: 0, freedBytes: 0 });
  });

  it("takes the links of every revision: else the older one would come back", async (t) => {
    const { repo, remove, world } = await cache(t);
    const path = await repo.link(main, "demo-Q8_0.gguf", eight);
    const before = modelHead("eight, as it was");
    await repo.link(old, "demo-Q8_0.gguf", before);
    await repo.link(old, "demo-Q4_0.gguf", four);
    assert.deepEqual(await remove([path]), { deletedFiles: 4, freedBytes: eight.length + before.length });
    // The ref named the revision that is gone.
    assert.deepEqual(await world(), [`blobs/${sha256(four)}`, `snapshots/${old}/demo-Q4_0.gguf`].sort());
  });

  it("takes every shard, in a folder too, and the folder", async (t) => {
    const { repo, remove, world } = await cache(t);
    const shards = ["00001", "00002", "00003"].map((number) => `Q8_0/demo-Q8_0-${number}-of-00003.gguf`);
    const links = await Promise.all(shards.map((path) => repo.link(main, path, modelHead(path))));
    await repo.link(main, "demo-Q4_0.gguf", four);
    const removed = await remove(links);
    assert.equal(removed.deletedFiles, 6);
    assert.deepEqual(await world(), [`blobs/${sha256(four)}`, "refs/main", `snapshots/${main}/demo-Q4_0.gguf`].sort());
  });

  it("keeps a blob that something else links, under another name or in another revision", async (t) => {
    const { repo, remove, world } = await cache(t);
    const path = await repo.link(main, "demo-Q8_0.gguf", eight);
    await symlink(`../../blobs/${sha256(eight)}`, join(repo.root, "snapshots", main, "same.gguf"));
    assert.deepEqual(await remove([path]), { deletedFiles: 1, freedBytes: 0 });
    assert.deepEqual(await world(), [`blobs/${sha256(eight)}`, "refs/main", `snapshots/${main}/same.gguf`].sort());
  });

  it("takes the whole repository with its last model", async (t) => {
    const { cacheDir, repo, remove } = await cache(t);
    const path = await repo.link(main, "sub/demo-Q8_0.gguf", eight);
    await remove([path]);
    assert.deepEqual(await readdir(cacheDir), []);
  });

  it("leaves what is not its own: other files, other tools' partials, other repositories", async (t) => {
    const { cacheDir, repo, remove, world } = await cache(t);
    const path = await repo.link(main, "demo-Q8_0.gguf", eight);
    const partial = `${sha256(four)}.incomplete`;
    await writeFile(join(repo.root, "blobs", partial), "half");
    await repo.plain(main, "README.md", Buffer.from("read me"));
    await writeFile(join(repo.root, "snapshots", ".DS_Store"), "x");
    const other = cacheRepo(cacheDir, "acme/other");
    const elsewhere = await other.link(main, "demo-Q8_0.gguf", eight);
    await remove([path]);
    assert.deepEqual(
      (await world()).filter((line) => !line.startsWith("..")),
      [`blobs/${partial}`, "refs/main", "snapshots/.DS_Store", `snapshots/${main}/README.md`].sort(),
    );
    assert.deepEqual(await readFile(elsewhere), eight);
  });

  it("takes a plain file where there are no links", async (t) => {
    const { cacheDir, repo, remove } = await cache(t);
    const path = await repo.plain(main, "demo-Q8_0.gguf", eight);
    assert.deepEqual(await remove([path]), { deletedFiles: 1, freedBytes: eight.length });
    assert.deepEqual(await readdir(cacheDir), []);
  });

  it("takes a dangling link", async (t) => {
    const { cacheDir, repo, remove } = await cache(t);
    const path = await repo.link(main, "demo-Q8_0.gguf", eight);
    await rm(join(repo.root, "blobs", sha256(eight)));
    assert.deepEqual(await remove([path]), { deletedFiles: 1, freedBytes: 0 });
    assert.deepEqual(await readdir(cacheDir), []);
  });

  it("takes a link that a person made to a file elsewhere, and not that file", async (t) => {
    const { repo, remove, world } = await cache(t);
    const file = join(await scratchFolder(t), "model.gguf");
    await writeFile(file, eight);
    await mkdir(join(repo.root, "snapshots", main), { recursive: true });
    const path = join(repo.root, "snapshots", main, "demo-Q8_0.gguf");
    await symlink(file, path);
    assert.deepEqual(await remove([path]), { deletedFiles: 1, freedBytes: 0 });
    assert.deepEqual(await readFile(file), eight);
    assert.deepEqual(await world(), []);
  });

  for (const moved of ["", "snapshots", "blobs"]) {
    it(`takes what lies on another disk, where ${moved || "the repository"} was moved, and leaves the link to there`, async (t) => {
      const { cacheDir, repo, remove, world } = await cache(t);
      const path = await repo.link(main, "sub/demo-Q8_0.gguf", eight);
      const disk = await scratchFolder(t);
      const place = join(repo.root, moved);
      // Links in a snapshot are relative: where it lies alone they lead to what lies beside it.
      if (moved === "snapshots") {
        await rename(join(repo.root, "blobs"), join(disk, "blobs"));
        await symlink(join(disk, "blobs"), join(repo.root, "blobs"));
      }
      const there = join(disk, moved || "repository");
      await rename(place, there);
      await symlink(there, place);
      assert.deepEqual(await readFile(path), eight);
      assert.deepEqual(await remove([path]), { deletedFiles: 2, freedBytes: eight.length });
      assert.deepEqual(await readdir(there), []);
      assert.ok((await lstat(place)).isSymbolicLink());
      assert.deepEqual(
        (await world()).filter((line) => line.includes("refs")),
        [],
      );
      assert.deepEqual(await remove([path]), { deletedFiles: 0, freedBytes: 0 });
      // It is still a place to put a model in.
      const again = await repo.link(main, "demo-Q4_0.gguf", four);
      assert.deepEqual(await remove([again]), { deletedFiles: 2, freedBytes: four.length });
      assert.deepEqual(await readdir(cacheDir), ["models--acme--demo-GGUF"]);
    });
  }

  it("follows no link to a folder, and keeps the blobs that one may show", async (t) => {
    const { cacheDir, repo, remove, world } = await cache(t);
    const elsewhere = await scratchFolder(t);
    await mkdir(join(elsewhere, "Q8_0"));
    const theirs = join(elsewhere, "Q8_0", "demo-Q8_0.gguf");
    await writeFile(theirs, eight);
    const linked = [
      join(repo.root, "snapshots", commitOf("linked")),
      join(repo.root, "snapshots", old, "Q8_0"),
    ] as const;
    for (const [place, target] of [
      [linked[0], elsewhere],
      [linked[1], join(elsewhere, "Q8_0")],
    ] as const) {
      const path = await repo.link(main, "Q8_0/demo-Q8_0.gguf", eight);
      await mkdir(join(place, ".."), { recursive: true });
      await symlink(target, place);
      assert.deepEqual(await remove([path]), { deletedFiles: 1, freedBytes: 0 });
      assert.deepEqual(await readFile(theirs), eight);
      assert.deepEqual(await world(), [`blobs/${sha256(eight)}`, place.slice(repo.root.length + 1)]);
      await rm(place);
      await remove([path], [sha256(eight)], [old]);
      assert.deepEqual(await readdir(cacheDir), []);
    }
  });

  it("goes on where a crash ended it: between the links, and between links and blobs", async (t) => {
    for (const crash of ["a link", "a shard's links", "all links", "all links and a folder"] as const) {
      const { cacheDir, repo, remove } = await cache(t);
      const shards = ["00001", "00002"].map((number) => ({
        path: `Q8_0/demo-Q8_0-${number}-of-00002.gguf`,
        bytes: modelHead(number),
      }));
      const links: string[] = [];
      for (const { path, bytes } of shards) {
        links.push(await repo.link(main, path, bytes));
        await repo.link(old, path, bytes);
      }
      const inOld = shards.map(({ path }) => join(repo.root, "snapshots", old, path));
      const gone = {
        "a link": [links[0]],
        "a shard's links": [links[0], inOld[0]],
        "all links": [...links, ...inOld],
        "all links and a folder": [...links, ...inOld],
      }[crash];
      for (const path of gone) await rm(path ?? "");
      if (crash === "all links and a folder") await rm(join(repo.root, "snapshots", old), { recursive: true });
      await remove(
        links,
        shards.map(({ bytes }) => sha256(bytes)),
        [main, old],
      );
      assert.deepEqual(await readdir(cacheDir), [], crash);
    }
  });

  it("refuses a blob's name that is none, and touches nothing outside", async (t) => {
    const { cacheDir, repo, remove } = await cache(t);
    await writeFile(join(cacheDir, "victim"), "x");
    await repo.link(main, "demo-Q4_0.gguf", four);
    assert.equal((await refusal(remove([], ["../../../victim"]))).code, "not_supported");
    assert.equal(await readFile(join(cacheDir, "victim"), "utf8"), "x");
    assert.equal(await readlink(join(repo.root, "snapshots", main, "demo-Q4_0.gguf")), `../../blobs/${sha256(four)}`);
  });

  it("leaves what another program has made for a download that is under way: refs, folders, its unfinished file", async (t) => {
    const { repo, remove, world } = await cache(t);
    const path = await repo.link(main, "sub/demo-Q8_0.gguf", eight);
    await writeFile(join(repo.root, "blobs", `${sha256(four)}.abc.incomplete`), "half");
    await mkdir(join(repo.root, "snapshots", old, "sub"), { recursive: true });
    await mkdir(join(repo.root, "refs", "pr"));
    await writeFile(join(repo.root, "refs", "pr", "1"), old);
    await writeFile(join(repo.root, "refs", "v1"), `${main}\n`);
    await remove([path]);
    assert.deepEqual(await world(), [`blobs/${sha256(four)}.abc.incomplete`, "refs/pr/1", `snapshots/${old}/sub/`]);
  });

  it("keeps a blob that a pull under way counts on", async (t) => {
    const { cacheDir, repo, remove, world } = await cache(t);
    const again = await repo.link(main, "demo-Q8_0.gguf", eight);
    const release = holdPaths([partialPath(cacheDir, repoName, sha256(eight))]);
    assert.deepEqual(await remove([again]), { deletedFiles: 1, freedBytes: 0 });
    assert.deepEqual(await world(), [`blobs/${sha256(eight)}`]);
    release();
    await remove([], [sha256(eight)]);
    assert.deepEqual(await readdir(cacheDir), []);
  });

  it("counts the bytes of a file with two names once", async (t) => {
    const { cacheDir, repo, remove } = await cache(t);
    const path = await repo.plain(main, "demo-Q8_0.gguf", eight);
    await mkdir(join(repo.root, "blobs"));
    await link(path, join(repo.root, "blobs", sha256(eight)));
    assert.deepEqual(await remove([path], [sha256(eight)]), { deletedFiles: 2, freedBytes: eight.length });
    assert.deepEqual(await readdir(cacheDir), []);
  });

  it("says so where the cache refuses", async (t) => {
    const { repo, remove } = await cache(t);
    const path = await repo.link(main, "demo-Q8_0.gguf", eight);
    await rm(join(repo.root, "blobs", sha256(eight)));
    await mkdir(join(repo.root, "blobs", sha256(eight), "in-the-way"), { recursive: true });
    const error = await refusal(remove([path]));
    assert.equal(error.code, "cache_unwritable");
    assert.match(error.message, /acme\/demo-GGUF/);
  });
});
