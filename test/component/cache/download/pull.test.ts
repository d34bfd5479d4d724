// Pulls that succeed: what stands in the cache afterwards.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { link, lstat, lutimes, mkdir, readdir, readFile, rm, stat, symlink, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { linkSnapshot, readRef, writeRef } from "../../../../src/cache/download/link.ts";
import { withGgufHead } from "../../../support/cache-folder.ts";
import { startPulling } from "../../../support/pulling.ts";

const bytes = (text: string, size = 300_000) => withGgufHead(Buffer.alloc(size, `${text} `));
/** Two quants of a repository and what they share. */
const twoQuants = {
  "demo-Q8_0.gguf": bytes("eight"),
  "demo-Q4_0.gguf": bytes("four"),
  "mmproj.gguf": bytes("eye", 1000),
};
const sha256 = (data: Uint8Array) => createHash("sha256").update(data).digest("hex");
const folder = "models--acme--demo-GGUF";

describe("a pull", () => {
  it("brings all shards and the projector, in subfolders too, as the hub's own tools lay them out", async (t) => {
    const { hub, pull, world, progress, shown } = await startPulling(t, { pageSize: 2 });
    const one = bytes("one");
    const two = bytes("two", 2_500_000);
    const eye = bytes("eye", 1000);
    const commit = hub.addRepo("acme/demo-GGUF", {
      files: {
        "README.md": Buffer.from("read me"),
        "Q8_0/demo-Q8_0-00001-of-00002.gguf": one,
        "Q8_0/demo-Q8_0-00002-of-00002.gguf": two,
        "demo-Q4_0.gguf": bytes("other"),
        "mmproj-F16.gguf": eye,
      },
    });
    const pulled = await pull("acme/demo-GGUF:Q8_0");

    const blob = (data: Buffer) => `blobs/${sha256(data)}`;
    const snapshot = `${folder}/snapshots/${commit}`;
    const expected = [
      ...[one, two, eye].map((data) => `${folder}/${blob(data)}`),
      `${folder}/refs/main`,
      `${snapshot}/Q8_0/demo-Q8_0-00001-of-00002.gguf -> ../../../${blob(one)}`,
      `${snapshot}/Q8_0/demo-Q8_0-00002-of-00002.gguf -> ../../../${blob(two)}`,
      `${snapshot}/mmproj-F16.gguf -> ../../${blob(eye)}`,
    ];
    assert.deepEqual(await world(), expected.sort());
    assert.deepEqual(await shown("acme/demo-GGUF", "Q8_0/demo-Q8_0-00002-of-00002.gguf"), two);
    assert.deepEqual(await shown("acme/demo-GGUF", "mmproj-F16.gguf"), eye);
    assert.equal(pulled.commit, commit);
    assert.deepEqual(
      pulled.files.map((file) => [file.blob, file.size]),
      [one, two, eye].map((data) => [sha256(data), data.length]),
    );

    const totalBytes = one.length + two.length + eye.length;
    assert.equal(pulled.downloadedBytes, totalBytes);
    const digests = progress.filter((step) => step.phase === "verifying").map((step) => step.digest);
    assert.deepEqual(
      digests,
      [one, two, eye].map((data) => `sha256:${sha256(data)}`),
    );
    assert.deepEqual(
      [...new Set(progress.map((step) => step.phase))],
      ["resolving", "downloading", "verifying", "linking"],
    );
    const steps = progress.map((step) => step.totalCompleted);
    assert.deepEqual(
      steps,
      steps.toSorted((a, b) => a - b),
    );
    assert.equal(progress.at(-1)?.totalCompleted, totalBytes);
    assert.equal(progress.at(-1)?.totalBytes, totalBytes);
  });

  it("resolves a short tag by the file list", async (t) => {
    const { hub, pull, shown } = await startPulling(t);
    hub.addRepo("acme/demo-GGUF", { files: { "demo-Q6_K.gguf": bytes("six"), "demo-Q4_K_M.gguf": bytes("four") } });
    const pulled = await pull("acme/demo-GGUF:Q6_K");
    assert.deepEqual(
      pulled.files.map((file) => file.path),
      ["demo-Q6_K.gguf"],
    );
    assert.deepEqual(await shown("acme/demo-GGUF", "demo-Q6_K.gguf"), bytes("six"));
  });

  it("adds a second quant of a repository, and downloads what they share once", async (t) => {
    const { hub, pull, shown } = await startPulling(t);
    hub.addRepo("acme/demo-GGUF", { files: twoQuants });
    await pull("acme/demo-GGUF:Q8_0");
    const second = await pull("acme/demo-GGUF:Q4_0");
    assert.equal(second.downloadedBytes, twoQuants["demo-Q4_0.gguf"].length);
    for (const [path, data] of Object.entries(twoQuants)) assert.deepEqual(await shown("acme/demo-GGUF", path), data);
    assert.equal(hub.requests.filter((request) => request.path.includes("path=mmproj.gguf")).length, 1);
  });

  it("keeps the quants of an older commit in the snapshot that the router lists", async (t) => {
    const { hub, pull, shown, cacheDir } = await startPulling(t);
    const files = {
      "demo-Q8_0.gguf": bytes("eight"),
      "a/demo-Q4_0.gguf": bytes("four"),
      "gone-Q5_K_M.gguf": bytes("gone"),
    };
    const old = hub.addRepo("acme/demo-GGUF", { files });
    for (const tag of ["Q8_0", "Q4_0", "Q5_K_M"]) await pull(`acme/demo-GGUF:${tag}`);
    // The same content under another name in another folder, a new quant, and one that is no more.
    const moved = {
      "demo-Q8_0.gguf": bytes("eight"),
      "b/c/demo-Q4_0.gguf": bytes("four"),
      "demo-Q6_K.gguf": bytes("six"),
    };
    const commit = hub.updateRepo("acme/demo-GGUF", { files: moved });
    const pulled = await pull("acme/demo-GGUF:Q6_K");
    assert.notEqual(commit, old);
    assert.equal(await readFile(join(cacheDir, folder, "refs", "main"), "utf8"), commit);
    for (const [path, data] of Object.entries(moved)) assert.deepEqual(await shown("acme/demo-GGUF", path), data);
    await assert.rejects(shown("acme/demo-GGUF", "gone-Q5_K_M.gguf"));
    assert.equal(pulled.downloadedBytes, moved["demo-Q6_K.gguf"].length);
  });

  it("brings a small file that is not in LFS, named and checked by git's digest", async (t) => {
    const { hub, pull, refusal, shown, progress } = await startPulling(t);
    hub.addRepo("acme/demo-GGUF", {
      files: { "demo-Q8_0.gguf": bytes("eight"), "demo-Q4_0.gguf": bytes("four") },
      lfs: false,
    });
    const gitSha1 = createHash("sha1").update("blob 300000\0").update(bytes("eight")).digest("hex");
    assert.equal((await pull("acme/demo-GGUF:Q8_0")).files[0]?.blob, gitSha1);
    assert.equal(progress.at(-1)?.digest, `sha1:${gitSha1}`);
    assert.deepEqual(await shown("acme/demo-GGUF", "demo-Q8_0.gguf"), bytes("eight"));
    hub.corrupt("demo-Q4_0.gguf");
    assert.equal((await refusal("acme/demo-GGUF:Q4_0")).code, "checksum_mismatch");
  });

  it("hashes a blob that it finds, trusts one that is vouched for, and looks into that too when told to verify", async (t) => {
    const { hub, pull, shown, cacheDir, progress } = await startPulling(t);
    hub.addRepo("acme/demo-GGUF", { files: { "demo-Q8_0.gguf": bytes("eight") } });
    const id = "acme/demo-GGUF:Q8_0";
    assert.equal((await pull(id)).files[0]?.found, undefined);
    const blob = join(cacheDir, folder, "blobs", sha256(bytes("eight")));
    progress.length = 0;
    const again = await pull(id);
    assert.deepEqual([again.downloadedBytes, again.files[0]?.found], [0, true]);
    assert.ok(progress.some(({ phase }) => phase === "verifying"));
    // As another tool leaves it where the power was cut: of the right size.
    await writeFile(blob, bytes("rotten"));
    assert.equal((await pull(id, { vouched: () => "stored" })).downloadedBytes, 0);
    const mended = await pull(id);
    assert.deepEqual([mended.downloadedBytes, mended.files[0]?.found], [300_000, undefined]);
    assert.deepEqual(await shown("acme/demo-GGUF", "demo-Q8_0.gguf"), bytes("eight"));
    await writeFile(blob, bytes("rotten"));
    assert.equal((await pull(id, { vouched: () => "stored", verify: true })).downloadedBytes, 300_000);
  });

  it("can be cancelled while it hashes what it found", async (t) => {
    const { hub, pull, refusal, world } = await startPulling(t);
    hub.addRepo("acme/demo-GGUF", { files: { "demo-Q8_0.gguf": bytes("eight", 30_000_000) } });
    await pull("acme/demo-GGUF:Q8_0");
    const before = await world();
    const abort = new AbortController();
    const onProgress = ({ phase }: { phase: string }) => (phase === "verifying" ? abort.abort() : undefined);
    const error = await refusal("acme/demo-GGUF:Q8_0", { signal: abort.signal, onProgress });
    assert.equal(error.code, "cancelled");
    assert.deepEqual(await world(), before);
  });

  it("is noted before anything shows it, so that a kill leaves no model that nobody knows", async (t) => {
    const { hub, pull, world } = await startPulling(t);
    hub.addRepo("acme/demo-GGUF", { files: { "demo-Q8_0.gguf": bytes("eight") } });
    const noted: string[][] = [];
    await pull("acme/demo-GGUF:Q8_0", {
      beforeShown: async () => void noted.push((await world()).filter((line) => !line.includes("/blobs/"))),
    });
    assert.deepEqual(noted, [[]]);
  });

  it("neither writes nor reads through a link that lies where its own files do", async (t) => {
    const { hub, pull, shown, cacheDir, world } = await startPulling(t);
    hub.addRepo("acme/demo-GGUF", { files: { "demo-Q8_0.gguf": bytes("eight") } });
    const victim = join(cacheDir, "somebodys.txt");
    await writeFile(victim, "precious");
    const blobs = join(cacheDir, folder, "blobs");
    await mkdir(blobs, { recursive: true });
    const blob = join(blobs, sha256(bytes("eight")));
    const links = [`${blob}.gw.incomplete`, `${blob}.sidecar.gw.incomplete`, `${blob}.lock.gw.incomplete`];
    for (const link of links) {
      await symlink(victim, link);
      // A lock that nobody renews.
      await lutimes(link, 0, 0);
    }
    await pull("acme/demo-GGUF:Q8_0");
    assert.equal(await readFile(victim, "utf8"), "precious");
    // Links under our own names make room for our files, and nothing behind them changes.
    assert.deepEqual(
      (await world()).filter((line) => line.endsWith(` -> ${victim}`)),
      [],
    );
    // A blob that is a link to a file of the right size, and even of the right content, is none.
    await writeFile(victim, bytes("eight"));
    await rm(blob);
    await symlink(victim, blob);
    assert.equal((await pull("acme/demo-GGUF:Q8_0")).downloadedBytes, 300_000);
    assert.equal((await lstat(blob)).isFile(), true);
    await writeFile(victim, "precious");
    assert.deepEqual(await shown("acme/demo-GGUF", "demo-Q8_0.gguf"), bytes("eight"));
  });

  it("puts a link right that is dangling or points elsewhere", async (t) => {
    const { hub, pull, shown, cacheDir } = await startPulling(t);
    const commit = hub.addRepo("acme/demo-GGUF", { files: { "demo-Q8_0.gguf": bytes("eight") } });
    await pull("acme/demo-GGUF:Q8_0");
    const place = join(cacheDir, folder, "snapshots", commit, "demo-Q8_0.gguf");
    await unlink(place);
    await symlink("../../blobs/nowhere", place);
    await pull("acme/demo-GGUF:Q8_0");
    assert.deepEqual(await shown("acme/demo-GGUF", "demo-Q8_0.gguf"), bytes("eight"));
  });

  it("makes hard links or copies where there are no symlinks", async (t) => {
    const { hub, pull, cacheDir } = await startPulling(t);
    const commit = hub.addRepo("acme/demo-GGUF", { files: { "demo-Q8_0.gguf": bytes("eight") } });
    const { files } = await pull("acme/demo-GGUF:Q8_0");
    const place = join(cacheDir, folder, "snapshots", commit, "demo-Q8_0.gguf");
    const blob = await stat(join(cacheDir, folder, "blobs", sha256(bytes("eight"))));
    for (const way of ["hardlink", "copy"] as const) {
      await rm(place);
      await linkSnapshot({ cacheDir, repo: "acme/demo-GGUF", commit, files, ways: [way] });
      assert.deepEqual(await readFile(place), bytes("eight"));
      assert.equal((await stat(place)).ino === blob.ino, way === "hardlink");
    }
    // Nothing to do where the place is another name of the blob already.
    await rm(place);
    await link(join(cacheDir, folder, "blobs", sha256(bytes("eight"))), place);
    await linkSnapshot({ cacheDir, repo: "acme/demo-GGUF", commit, files });
    assert.equal((await stat(place)).ino, blob.ino);
  });

  it("makes the links when the ref has but to be renamed", async (t) => {
    const { hub, pull, cacheDir } = await startPulling(t);
    const first = hub.addRepo("acme/demo-GGUF", { files: { "demo-Q8_0.gguf": bytes("eight") } });
    await pull("acme/demo-GGUF:Q8_0");
    const next = "f".repeat(40);
    await writeRef(cacheDir, "acme/demo-GGUF", "main", next, async () => {
      assert.equal(await readRef(cacheDir, "acme/demo-GGUF", "main"), first);
      const entries = await readdir(join(cacheDir, folder), { withFileTypes: true });
      const [waiting, ...others] = entries.filter((entry) => entry.isFile());
      assert.deepEqual(others, []);
      assert.equal(await readFile(join(cacheDir, folder, waiting?.name ?? ""), "utf8"), next);
    });
    assert.equal(await readRef(cacheDir, "acme/demo-GGUF", "main"), next);
  });

  it("lets two pulls at once share one download of a common file", async (t) => {
    const { hub, pull, shown } = await startPulling(t);
    hub.addRepo("acme/demo-GGUF", { files: twoQuants });
    const hold = hub.throttle("mmproj.gguf", 10);
    const both = [pull("acme/demo-GGUF:Q8_0"), pull("acme/demo-GGUF:Q4_0")];
    await hold.reached;
    hold.release();
    await Promise.all(both);
    for (const [path, data] of Object.entries(twoQuants)) assert.deepEqual(await shown("acme/demo-GGUF", path), data);
    assert.equal(hub.requests.filter((request) => request.path.includes("path=mmproj.gguf")).length, 1);
  });
});
