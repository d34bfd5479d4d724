// Three gateways with one document behind HAProxy, by the shipped file: one pull for all, what a kill costs, a restart that costs nothing.
import assert from "node:assert/strict";
import { test } from "node:test";
import { freePort } from "../../src/engines/process/free-port.ts";
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
  const ports = [await freePort(), await freePort(), await freePort()];
  const start = (at: number): Promise<Replica> => {
    const flags = ["--hub-mirror", `http://127.0.0.1:${ports[0]}/hub`];
    return startReplica(t, at, { document, environment: { HF_ENDPOINT: hub.endpoint }, flags, port: ports[at] });
  };
  // The one that pulls may be the last that is up. All have the same flags: its mirror is itself.
  const starting = Promise.all([start(1), start(2)]);
  for (const port of ports.slice(1)) await until("it waits for the mirror", () => isWaiting(port));
  const first = await start(0);
  const others = await starting;
  const replicas = [first, ...others];
  const compare = async (): Promise<number | null> =>
    (await commandHere(first.folders, ["status", "--all", replicas.map(({ url }) => url).join()])).code;

  await t.test("all start with one document: not each downloads from the hub", async () => {
    for (const replica of replicas) await until("it has the model", () => has(replica));
    // Once, as test/engine/hub-mirror.test.ts has it. Beside tests that keep all cores busy, a pull, which has the lowest priority, can be without
    // a byte for 30 s and go to the hub; `Fits` reads the header there.
    assert.ok(hub.sentBytes(path) < replicas.length * bytes.length, `${hub.sentBytes(path)} of ${bytes.length} bytes`);
  });

  await t.test("a changed document: one hash", async () => {
    const agree = (count: number): Promise<unknown> =>
      until(`they have ${count} hashes`, async () => (await documentHashes(replicas)).size === count);
    const changed = document.replace('"version"', '"pruneAfter":30,"version"');
    await first.folders.writeConfig(changed);
    await agree(2);
    assert.equal(await compare(), 1);
    for (const other of others) await other.folders.writeConfig(changed);
    await agree(1);
    assert.equal(await compare(), 0);
  });

  const url = await balance(t, replicas);
  await seesAll(url, replicas);

  const gatewayOf = async (session: string): Promise<string | null> => {
    const response = await fetch(`${url}/v1/models`, { headers: { "x-session-id": session } });
    return response.headers.get("x-gateway");
  };
  const sessions = ["a", "b", "c", "d", "e", "f"];

  await t.test("one is killed: only its own streams end, and its sessions go to another one", async () => {
    const before = new Map<string, string | null>();
    for (const session of sessions) before.set(session, await gatewayOf(session));
    for (const [session, gateway] of before) assert.equal(await gatewayOf(session), gateway);
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
    for (const [session, gateway] of before)
      assert.equal((await gatewayOf(session)) === gateway, gateway !== victim?.name, `${session} was at ${gateway}`);
    const replies = await Promise.all(all);
    // Those without a session were spread.
    assert.equal(new Set(replies.map(({ gateway }) => gateway)).size, replicas.length, JSON.stringify(replies));
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

async function isWaiting(port: number): Promise<boolean> {
  const response = await fetch(`http://127.0.0.1:${port}/status`).catch(() => null);
  return (await response?.text())?.includes("MirrorBusy") ?? false;
}

async function has({ url }: Replica): Promise<boolean> {
  const { data } = (await (await fetch(`${url}/v1/models`)).json()) as { readonly data: readonly { id: string }[] };
  return data.some(({ id }) => id === model);
}
