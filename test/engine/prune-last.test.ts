// Prune comes last and late: a typo, a rename, half of a save and a change of mind have each cost a model.
import assert from "node:assert/strict";
import { access, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { cacheTalker, type GatewayFolders, makeFolders } from "../support/folders.ts";
import { eventsOf, startTestGateway, streamChat, type TestGateway } from "../support/gateway.ts";
import { type LoopbackHub, startLoopbackHub } from "../support/loopback-hub.ts";
import { answersOf, modelBytes, slowModel, talkingModel } from "../support/models.ts";
import { until } from "../support/scratch.ts";

const mine = "acme/mine:Q8_0";

interface Held {
  readonly kind: string;
  readonly held: string;
  readonly because: string;
  readonly until: string | null;
}

interface Started {
  readonly hub: LoopbackHub;
  readonly folders: GatewayFolders;
  readonly gateway: TestGateway;
  /** Saves a document that names another program's model, and these. */
  save(pruneAfter: number, ...ids: readonly string[]): Promise<void>;
}

async function started(t: TestContext, bytes: Uint8Array, pruneAfter: number): Promise<Started> {
  const hub = await startLoopbackHub(t);
  hub.addRepo("acme/mine", { files: { "mine-Q8_0.gguf": bytes } });
  hub.addRepo("acme/renamed", { files: { "renamed-Q8_0.gguf": modelBytes(talkingModel("renamed")) } });
  const folders = await makeFolders(t);
  const other = await cacheTalker(folders, "acme/other");
  const save = (seconds: number, ...ids: readonly string[]): Promise<void> =>
    folders.writeConfig(
      `version: 1\nprune: true\npruneAfter: ${seconds}\nmodels:\n${[`"${other}"`, ...ids].map((id) => `  - ${id}\n`).join("")}`,
    );
  // Of people's own, so that no section goes with the model: two threads that spin fall to a tenth beside another test.
  await writeFile(join(folders.stateDir, "router.preset.ini"), "[*]\nthreads = 1\n");
  await save(pruneAfter, mine);
  const gateway = await startTestGateway(t, { folders, environment: { HF_ENDPOINT: hub.endpoint } });
  await gateway.converged();
  return { hub, folders, gateway, save };
}

function reasonOf({ gateway }: TestGateway, type = "Synced"): string | undefined {
  return gateway.status().conditions.find((condition) => condition.type === type)?.reason;
}

async function heldPrune(gateway: TestGateway): Promise<Held | undefined> {
  const { body } = await gateway.json("/api/plan");
  return (body["held"] as readonly Held[]).find(({ kind, held }) => kind === "model.remove" && held === "prune");
}

function removals({ gateway }: TestGateway): number {
  return eventsOf(gateway, "action.started").filter(({ data }) => (data as { kind: string }).kind === "model.remove")
    .length;
}

function isHere({ cacheDir }: GatewayFolders): Promise<void> {
  return access(join(cacheDir, "models--acme--mine", "refs", "main"));
}

test("a typo in an id, and half of a save, delete nothing; what is taken out for good goes after its time, over a restart too", async (t) => {
  const { hub, folders, gateway, save } = await started(t, modelBytes(talkingModel("mine")), 1);

  await save(1, "acme/mien:Q8_0");
  await gateway.until("not found", () => reasonOf(gateway, "Stalled") === "HubNotFound");
  const late = await until("its time has passed", async () => {
    const held = await heldPrune(gateway);
    return held?.until === null && held;
  });
  assert.equal(late.because, "everything else comes first: pull acme/mien:Q8_0");
  assert.equal(reasonOf(gateway), "OutOfSync");
  assert.equal(await gateway.ask(mine), answersOf("mine").hello);

  await save(1, mine);
  await gateway.until("as before", (status) => status.sync === "Synced" && status.observedGeneration === 3);
  await save(60);
  await delay(200);
  await save(60, mine);
  await gateway.json("/api/reconcile?wait=true", { method: "POST" });
  assert.deepEqual([reasonOf(gateway), await heldPrune(gateway), removals(gateway)], ["AsDesired", undefined, 0]);

  await save(3600);
  const reconciled = await gateway.json("/api/reconcile?wait=true", { method: "POST" });
  assert.deepEqual([reconciled.body["converged"], reasonOf(gateway)], [true, "PrunePending"]);
  const before = await heldPrune(gateway);
  const left = Date.parse(before?.until ?? "") - 3_600_000 - Date.now();
  assert.ok(left <= 0 && left > -60_000, before?.until ?? "");
  await gateway.gateway.stop();

  const again = await startTestGateway(t, { folders, environment: { HF_ENDPOINT: hub.endpoint } });
  await again.converged();
  const after = await heldPrune(again);
  assert.deepEqual([reasonOf(again), after?.because], ["PrunePending", before?.because]);
  const moved = Date.parse(after?.until ?? "") - Date.parse(before?.until ?? "");
  assert.ok(Math.abs(moved) < 1_000, "its time began before the restart");
  await isHere(folders);
  // Nothing but the time of the deletion wakes the loop here.
  await save(1, mine);
  await again.json("/api/reconcile?wait=true", { method: "POST" });
  assert.equal(reasonOf(again), "AsDesired");
  await save(1);
  await again.until("pending", () => reasonOf(again) === "PrunePending");
  await again.until("deleted", () => reasonOf(again) === "AsDesired");
  assert.equal(removals(again), 1);
  await assert.rejects(isHere(folders));
});

test("a rename keeps the model until the new one is there", async (t) => {
  const { hub, folders, gateway, save } = await started(t, modelBytes(talkingModel("mine")), 0);
  const hold = hub.throttle("renamed-Q8_0.gguf", 100_000);
  await save(0, "acme/renamed:Q8_0");
  await hold.reached;
  assert.match((await heldPrune(gateway))?.because ?? "", /^everything else comes first: pull acme\/renamed:Q8_0$/);
  assert.equal(await gateway.ask(mine), answersOf("mine").hello);
  await isHere(folders);
  hold.release();
  await gateway.until("renamed", (status) => reasonOf(gateway) === "AsDesired" && status.observedGeneration === 2);
  assert.equal(await gateway.ask("acme/renamed:Q8_0"), answersOf("renamed").hello);
  assert.equal(removals(gateway), 1);
  await assert.rejects(isHere(folders));
});

test("a model that is put back while its last answer is awaited stays, and the answer is whole", async (t) => {
  const { folders, gateway, save } = await started(t, modelBytes(slowModel("mine")), 0);
  let pieces = 0;
  let edited: Promise<void> | null = null;
  const answer = await streamChat(gateway.url, mine, "long", () => {
    pieces++;
    if (pieces === 5)
      edited = (async () => {
        await save(0);
        await gateway.until("draining", (status) =>
          status.running.some((action) => (action as { kind: string }).kind === "model.remove"),
        );
        await save(0, mine);
      })();
  });
  await edited;
  assert.deepEqual(answer, { text: answersOf("mine").long, done: true, error: null });
  await gateway.until("as before", (status) => status.observedGeneration === 3 && reasonOf(gateway) === "AsDesired");
  const ends = eventsOf(gateway.gateway, "action.failed").map(({ data }) => (data as { code: string }).code);
  assert.deepEqual([removals(gateway), ends], [1, ["cancelled"]]);
  await isHere(folders);
  assert.equal(await gateway.ask(mine), answersOf("mine").hello);
});
