// Pulls with a mirror in front of the hub: it is asked first for bytes, the hub for what it does not deliver, and no token of the
// hub's goes there.
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import type { Mirror } from "../../../../src/cache/download/sources.ts";
import type { GatewayError } from "../../../../src/core/errors.ts";
import { createHubClient } from "../../../../src/hub/client.ts";
import { cleanUp } from "../../../support/clean-up.ts";
import { startLoopbackHub } from "../../../support/loopback-hub.ts";
import { modelBytes, talkingModel } from "../../../support/models.ts";
import { startPulling } from "../../../support/pulling.ts";

const repo = "acme/mirrored-GGUF";
const path = "mirrored-Q8_0.gguf";
const id = `${repo}:Q8_0`;
const files = { [path]: modelBytes(talkingModel("mirrored")) };
const size = files[path]?.length ?? 0;
/** For a thread of its own. */
const bigFiles = { [path]: modelBytes({ ...talkingModel("mirrored"), width: 512, feedForward: 4096 }) };
const token = "hf_of-the-hub-alone";

async function world(t: TestContext) {
  const pulling = await startPulling(t, { token, tokens: [token] });
  const mirrorHub = await startLoopbackHub(t);
  const client = createHubClient({ endpoint: mirrorHub.endpoint, token: undefined });
  cleanUp(t, () => client.close());
  const missed: GatewayError[] = [];
  const mirror: Mirror = { client, onMiss: (_repo, why) => void missed.push(why) };
  return { ...pulling, mirrorHub, mirror, missed };
}

describe("a pull with a mirror", () => {
  it("takes the bytes from the mirror, whatever commit that has them at, and sends it no token", async (t) => {
    const { hub, mirrorHub, mirror, missed, pull, shown } = await world(t);
    const commit = hub.addRepo(repo, { files: { ...files, "README.md": Buffer.from("newer") } });
    assert.notEqual(mirrorHub.addRepo(repo, { files }), commit);
    const pulled = await pull(id, { mirror });
    assert.equal(pulled.commit, commit);
    assert.deepEqual(await shown(repo, path), Buffer.from(files[path] ?? []));
    assert.deepEqual([hub.sentBytes(path), mirrorHub.sentBytes(path)], [0, size]);
    assert.deepEqual(missed, []);
    assert.ok(hub.requests.length > 0 && hub.requests.every(({ authorized }) => authorized));
    assert.deepEqual(
      mirrorHub.requests.filter(({ authorized }) => authorized),
      [],
    );
  });

  it("takes from the hub what the mirror lacks, and what it breaks off; says so once", async (t) => {
    const { hub, mirrorHub, mirror, missed, pull, shown } = await world(t);
    const names = ["lone-00001-of-00002.gguf", "lone-00002-of-00002.gguf"];
    const shards = Object.fromEntries(names.map((name) => [name, modelBytes(talkingModel(name))]));
    hub.addRepo("acme/lone", { files: shards });
    await pull("acme/lone:lone", { mirror });
    assert.deepEqual(
      missed.map(({ code }) => code),
      ["hub_not_found"],
    );
    hub.addRepo(repo, { files: bigFiles });
    mirrorHub.addRepo(repo, { files: bigFiles });
    const held = mirrorHub.throttle(path, 1_500_000);
    const pulling = pull(id, { mirror });
    await held.reached;
    await mirrorHub.close();
    await pulling;
    assert.deepEqual(
      missed.map(({ code }) => code),
      ["hub_not_found", "hub_unreachable"],
    );
    assert.deepEqual(await shown(repo, path), Buffer.from(bigFiles[path] ?? []));
    // What the mirror had delivered is not fetched again.
    assert.ok(hub.sentBytes(path) <= (bigFiles[path]?.length ?? 0) - 1_000_000);
  });

  it("keeps nothing of wrong bytes, and has the file from the hub", async (t) => {
    const { hub, mirrorHub, mirror, missed, pull, shown, world: cache } = await world(t);
    hub.addRepo(repo, { files });
    mirrorHub.addRepo(repo, { files });
    mirrorHub.corrupt(path);
    await pull(id, { mirror });
    assert.deepEqual(
      missed.map(({ code }) => code),
      ["checksum_mismatch"],
    );
    assert.equal(hub.sentBytes(path), size);
    assert.deepEqual(await shown(repo, path), Buffer.from(files[path] ?? []));
    assert.equal((await cache()).length, 3);
    // Another file under the same name is refused before a byte of it comes.
    mirrorHub.updateRepo("acme/other", { files: { "other-Q8_0.gguf": modelBytes(talkingModel("stale")) } });
    hub.addRepo("acme/other", { files: { "other-Q8_0.gguf": modelBytes(talkingModel("fresh")) } });
    await pull("acme/other:Q8_0", { mirror });
    assert.match(missed[1]?.message ?? "", /another digest/);
    assert.deepEqual(await shown("acme/other", "other-Q8_0.gguf"), Buffer.from(modelBytes(talkingModel("fresh"))));
  });

  it("does without the hub where that cannot be reached, and without the mirror", async (t) => {
    const { hub, mirrorHub, mirror, missed, pull, refusal, shown } = await world(t);
    mirrorHub.addRepo(repo, { files });
    await hub.close();
    await pull(id, { mirror });
    assert.deepEqual(await shown(repo, path), Buffer.from(files[path] ?? []));
    assert.deepEqual(missed, []);
    // The mirror has not all of the repository: that another quant is not there is not known.
    assert.equal((await refusal(`${repo}:Q4_K_M`, { mirror })).code, "hub_unreachable");

    const other = await world(t);
    other.hub.addRepo(repo, { files });
    await other.mirrorHub.close();
    // It may have been started at the same time.
    const starting = { ...other.mirror, isStarting: () => true };
    assert.equal((await other.refusal(id, { mirror: starting })).code, "mirror_busy");
    assert.deepEqual([other.hub.sentBytes(path), other.missed], [0, []]);
    await other.pull(id, { mirror: other.mirror });
    assert.deepEqual(
      other.missed.map(({ code, message }) => [code, /refuses connections/.test(message)]),
      [["hub_unreachable", true]],
    );
  });

  it("waits for a mirror that is still pulling the file itself", async (t) => {
    const { hub, mirrorHub, mirror, missed, refusal, pull } = await world(t);
    hub.addRepo(repo, { files });
    mirrorHub.addRepo(repo, { files });
    const headers = { "X-Error-Code": "StillPulling", "Retry-After": "5" };
    mirrorHub.failNext({ status: 503, headers });
    const { code, retryAfterMs, reaction } = await refusal(id, { mirror });
    assert.deepEqual([code, retryAfterMs, reaction], ["mirror_busy", 5_000, "wait"]);
    assert.deepEqual([hub.sentBytes(path), missed], [0, []]);
    await pull(id, { mirror });
    assert.deepEqual([hub.sentBytes(path), mirrorHub.sentBytes(path)], [0, size]);
  });
});
