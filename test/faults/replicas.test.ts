// Three gateways with one document behind HAProxy, by the shipped file: one pull for all, what a kill costs, a restart that costs nothing.
import assert from "node:assert/strict";
import { test } from "node:test";
import { commandHere } from "../support/command.ts";
import { startLoopbackHub } from "../support/loopback-hub.ts";
import { modelBytes, slowModel } from "../support/models.ts";
import { chat, type Reply, startClients } from "../support/replica-clients.ts";
import { balance, documentHashes, type Replica, seesAll, startReplica } from "../support/replicas.ts";
import { until } from "../support/scratch.ts";

const repo = "acme/shared-GGUF";
const path = "shared-Q8_0.gguf";
const model = `${repo}:Q8_0`;
const document = JSON.stringify({
  version: 1,
  models: [{ id: model, ctxSize: 8192, preset: { parallel: 8, threads: 1 }, pinned: true }],
});
const streams = 6;
const forever = { model, stream: true, messages: [{ role: "user", content: "forever" }] };
/** Between the requests of a client: processors are for the streams. */
const pauseMs = 200;

const isLost = ({ outcome }: Reply): boolean => outcome !== "whole";

test("three gateways with one document behind HAProxy", async (t) => {
  const hub = await startLoopbackHub(t);
  const bytes = Buffer.from(modelBytes(slowModel("shared")));
  hub.addRepo(repo, { files: { [path]: bytes } });
  const environment = { HF_ENDPOINT: hub.endpoint };
  const empty = "version: 1\nmodels: []\n";
  // All have the same flags: the first one's mirror is itself.
  let mirror: string | undefined;
  const flags = (own: string): readonly string[] => ["--hub-mirror", `${(mirror ??= own)}/hub`];
  const options = { document: empty, environment, flags };
  const first = await startReplica(t, 0, options);
  const others = await Promise.all([1, 2].map((at) => startReplica(t, at, options)));
  const replicas = [first, ...others];
  const compare = async (): Promise<number | null> =>
    (await commandHere(first.folders, ["status", "--all", replicas.map(({ url }) => url).join()])).code;
  const agree = (count: number): Promise<unknown> =>
    until(`they have ${count} hashes`, async () => (await documentHashes(replicas)).size === count);

  await t.test("a document that changes on all at once: one hash, and one download from the hub", async () => {
    await first.folders.writeConfig(empty.replace("version", "suspend: true\nversion"));
    await agree(2);
    assert.equal(await compare(), 1);
    await Promise.all(replicas.map(({ folders }) => folders.writeConfig(document)));
    await agree(1);
    for (const replica of replicas) await until("it has the model", () => has(replica));
    assert.equal(await compare(), 0);
    // `Fits` of what is not here yet reads the header, at most its first MiB.
    assert.ok(hub.sentBytes(path) < bytes.length + replicas.length * 1024 ** 2, `${hub.sentBytes(path)} bytes`);
  });

  const url = await balance(t, replicas);
  await seesAll(url, replicas);

  await t.test("one is killed: only its own streams end", async () => {
    // The one whose stream began last: it has most of it ahead.
    let last: string | null = null;
    let begun = 0;
    const all = Array.from({ length: streams }, () =>
      chat(url, { ...forever, max_tokens: 100 }, (gateway) => {
        begun++;
        last = gateway;
      }),
    );
    await until("all are under way", () => begun === streams);
    const victim = replicas.find(({ name }) => name === last);
    victim?.serve.process.kill("SIGKILL");
    const clients = startClients(url, { model, max_tokens: 1 }, 4, pauseMs);
    const replies = await Promise.all(all);
    const lost = replies.filter(isLost);
    assert.ok(lost.length > 0 && lost.length < streams, JSON.stringify(replies));
    assert.ok(
      lost.every(({ gateway, outcome }) => gateway === victim?.name && outcome !== "refused"),
      JSON.stringify(lost),
    );
    assert.deepEqual((await clients.stop()).filter(isLost), []);
    await victim?.restart();
    await seesAll(url, replicas);
  });

  await t.test("a rolling restart loses no request", async () => {
    const short = startClients(url, { model, max_tokens: 1 }, 2, pauseMs);
    const long = startClients(url, { ...forever, max_tokens: 40 }, 2, pauseMs);
    for (const replica of replicas) {
      replica.serve.process.kill("SIGTERM");
      assert.equal((await replica.serve.exited).code, 0);
      await replica.restart();
      await seesAll(url, replicas);
    }
    assert.deepEqual((await short.stop()).filter(isLost), []);
    assert.deepEqual((await long.stop()).filter(isLost), []);
  });
});

async function has({ url }: Replica): Promise<boolean> {
  const { data } = (await (await fetch(`${url}/v1/models`)).json()) as { readonly data: readonly { id: string }[] };
  return data.some(({ id }) => id === model);
}
