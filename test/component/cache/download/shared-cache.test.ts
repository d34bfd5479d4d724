// Pulls in a cache that others use too: what they count on stays when a pull is called off.
import assert from "node:assert/strict";
import { mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { sha256, withGgufHead } from "../../../support/cache-folder.ts";
import { startPulling } from "../../../support/pulling.ts";
import { until } from "../../../support/scratch.ts";

const [one, two] = ["demo-Q8_0-00001-of-00002.gguf", "demo-Q8_0-00002-of-00002.gguf"] as const;
const files = {
  [one]: withGgufHead(Buffer.alloc(300_000, "one ")),
  [two]: withGgufHead(Buffer.alloc(3_000_000, "two ")),
};
const id = "acme/demo-GGUF:Q8_0";

describe("a pull that is called off", () => {
  it("leaves a shard that another tool stored meanwhile", async (t) => {
    const { hub, refusal, cacheDir, world } = await startPulling(t);
    hub.addRepo("acme/demo-GGUF", { files });
    const hold = hub.throttle(two, 1_000_000);
    const abort = new AbortController();
    const pulled = refusal(id, { signal: abort.signal });
    await hold.reached;
    const root = join(cacheDir, "models--acme--demo-GGUF");
    const snapshot = join(root, "snapshots", "b".repeat(40));
    await mkdir(snapshot, { recursive: true });
    const blob = sha256(files[one]);
    await writeFile(join(root, "blobs", blob), files[one]);
    await symlink(`../../blobs/${blob}`, join(snapshot, one));
    abort.abort();
    assert.equal((await pulled).code, "cancelled");
    hold.release();
    assert.deepEqual(await readFile(join(snapshot, one)), files[one]);
    assert.deepEqual(
      (await world()).map((line) => line.split("/").slice(1).join("/")),
      [`blobs/${blob}`, `snapshots/${"b".repeat(40)}/${one} -> ../../blobs/${blob}`],
    );
  });

  it("leaves what another name of the model in the same document counts on", async (t) => {
    const { hub, client, pull, refusal, world } = await startPulling(t);
    hub.addRepo("acme/demo-GGUF", { files });
    const hold = hub.throttle(two, 2_000_000);
    const abort = new AbortController();
    const first = refusal(id, { signal: abort.signal });
    await hold.reached;
    // The first one holds all of its files already: with the other's there are two that count on them.
    let hasList = false;
    const listTree: typeof client.listTree = async (...asked) => {
      const tree = await client.listTree(...asked);
      hasList = true;
      return tree;
    };
    const second = pull("acme/demo-GGUF:demo-Q8_0", { client: { ...client, listTree } });
    await until("the other pull counts on the same files", () => hasList);
    abort.abort();
    assert.equal((await first).code, "cancelled");
    hold.release();
    const { downloadedBytes, resumedBytes } = await second;
    assert.ok(downloadedBytes < files[two].length, String(downloadedBytes));
    assert.equal(resumedBytes + downloadedBytes, files[one].length + files[two].length);
    assert.equal((await world()).length, 5);
    assert.equal(hub.sentBytes(one), files[one].length);
  });
});
