// Health and readiness on a running gateway: what fails is named, and one bad model takes nobody's readiness.
import assert from "node:assert/strict";
import { test } from "node:test";
import { cacheModel, cacheTalker, makeFolders } from "../support/folders.ts";
import { startTestGateway, type TestGateway } from "../support/gateway.ts";
import { startLoopbackHub } from "../support/loopback-hub.ts";
import { scrape } from "../support/metrics.ts";
import { answersOf, modelBytes, talkingModel } from "../support/models.ts";
import { codeOf } from "../support/own-calls.ts";
import { chatWith, postWith } from "../support/requests.ts";

const broken = "acme/broken:Q8_0";
const absent = "acme/absent:Q8_0";
const key = "mgw-test-key-of-a-sufficient-length-0123456789";

function conditionIn({ gateway }: TestGateway, type: string): string {
  const { status, reason } = gateway.status().conditions.find((each) => each.type === type) ?? {};
  return `${status} ${reason}`;
}

async function readiness(gateway: TestGateway, path: string): Promise<unknown> {
  const { status, body } = await gateway.json(path);
  return [status, body["model"], body["status"], body["reason"]];
}

test("a model that cannot be loaded, one that cannot be pulled and a broken file, beside a good model", async (t) => {
  const hub = await startLoopbackHub(t);
  hub.addRepo("acme/absent", { files: { "absent-Q4_0.gguf": Buffer.from("x") } });
  const folders = await makeFolders(t);
  const good = await cacheTalker(folders, "acme/good");
  const bytes = modelBytes(talkingModel("broken"));
  await cacheModel(folders, "acme/broken", "model-Q8_0.gguf", bytes.subarray(0, bytes.length >> 1));
  const yaml = (models: readonly unknown[]): string => JSON.stringify({ version: 1, models });
  const gateway = await startTestGateway(t, {
    folders,
    yaml: yaml([{ id: good, aliases: ["chat"] }]),
    environment: { HF_ENDPOINT: hub.endpoint },
  });
  const readyz = async (): Promise<number> => (await gateway.json("/readyz")).status;

  await t.test("all is well: a model that was not asked yet is ready, by each of its names", async () => {
    const { health } = await gateway.converged();
    assert.equal(health, "Healthy");
    assert.equal(conditionIn(gateway, "Healthy"), "True NothingFails");
    for (const name of [good, encodeURIComponent(good), "chat", good.toUpperCase()])
      assert.deepEqual(await readiness(gateway, `/api/models/${name}/ready`), [200, good, "ok", "OnDemand"], name);
    assert.equal(await gateway.ask(good), answersOf("acme/good").hello);
    await gateway.until("seen", ({ models }) =>
      models.some(({ conditions }) => conditions.some(({ type, reason }) => type === "Ready" && reason === "Loaded")),
    );
    assert.deepEqual(await readiness(gateway, `/api/models/${good}/ready`), [200, good, "ok", "Loaded"]);
  });

  await t.test("a model that cannot be loaded fails Healthy by name, and no other's readiness", async () => {
    // Not before: the engine refuses it as soon as it is asked what it needs.
    await gateway.writeConfig(yaml([{ id: good, aliases: ["chat"] }, broken]));
    await gateway.until("named", ({ models }) => models.some(({ id }) => id === broken));
    assert.equal((await gateway.json("/v1/chat/completions", chatWith(broken))).status, 500);
    // Before the engine's words are read, the router's list shows that the load failed.
    const told = /acme\/broken:Q8_0: Its last load failed: /;
    const { conditions, health } = await gateway.until("told", (report) =>
      told.test(report.conditions.find(({ type }) => type === "Healthy")?.message ?? ""),
    );
    const healthy = conditions.find(({ type }) => type === "Healthy");
    assert.deepEqual([health, healthy?.status, healthy?.reason], ["Degraded", "False", "ModelsFail"]);
    assert.doesNotMatch(healthy?.message ?? "", /acme\/good/);
    assert.deepEqual(await readiness(gateway, `/api/models/${broken}/ready`), [503, broken, "unready", "LoadFailing"]);
    assert.deepEqual(await readiness(gateway, `/api/models/${good}/ready`), [200, good, "ok", "Loaded"]);
    assert.equal(conditionIn(gateway, "Ready"), "True Serving");
    assert.equal(await readyz(), 200);
    const { value } = await scrape(gateway);
    assert.deepEqual(
      [
        value("healthy"),
        value("ready"),
        value("model_ready", { model: broken }),
        value("model_ready", { model: good }),
      ],
      [0, 1, 0, 1],
    );
  });

  await t.test("a pull that is stalled does so too, with its reason", async () => {
    await gateway.writeConfig(yaml([{ id: good, aliases: ["chat"] }, absent]));
    const { conditions } = await gateway.until("stalled", ({ conditions: all }) =>
      all.some(({ type, status }) => type === "Stalled" && status === "True"),
    );
    assert.match(conditions.find(({ type }) => type === "Healthy")?.message ?? "", /^acme\/absent:Q8_0: /);
    const [status, model, is, reason] = (await readiness(gateway, `/api/models/${absent}/ready`)) as unknown[];
    assert.deepEqual([status, model, is], [503, absent, "unready"]);
    assert.equal(reason, conditionIn(gateway, "Stalled").split(" ")[1]);
    assert.equal(gateway.gateway.status().health, "Degraded");
    assert.deepEqual(await readiness(gateway, `/api/models/${good}/ready`), [200, good, "ok", "Loaded"]);
    assert.equal(await readyz(), 200);
    assert.deepEqual([(await scrape(gateway)).value("stalled"), (await scrape(gateway)).value("synced")], [1, 0]);
    // The document does not name it any more: it fails for those who ask for it, and is nobody's concern.
    assert.equal((await gateway.json(`/api/models/${broken}/ready`)).status, 503);
  });

  await t.test("a broken file does so while everything is served", async () => {
    await gateway.writeConfig(yaml([{ id: good, aliases: ["chat"] }]));
    await gateway.until("healthy", ({ health }) => health === "Healthy");
    await gateway.writeConfig('{"version": 1, "modles": []}');
    const { health, conditions } = await gateway.until("degraded", (status) => status.health === "Degraded");
    assert.equal(health, "Degraded");
    const healthy = conditions.find(({ type }) => type === "Healthy");
    assert.deepEqual([healthy?.status, healthy?.reason], ["False", "ParseError"]);
    assert.match(healthy?.message ?? "", /gateway\.yaml:1:\d+: .*modles/);
    assert.equal(conditionIn(gateway, "Ready"), "True ServingLastGood");
    assert.equal(await readyz(), 200);
    assert.deepEqual(await readiness(gateway, "/api/models/chat/ready"), [200, good, "ok", "Loaded"]);
    const { value } = await scrape(gateway);
    assert.deepEqual([value("source_valid"), value("healthy"), value("ready")], [0, 0, 1]);
    await gateway.writeConfig(yaml([good]));
    await gateway.until("healthy", (status) => status.health === "Healthy");
  });

  await t.test("a model that nobody has is not found; the question loads nothing", async () => {
    await gateway.json("/api/eject-model", postWith({ model: good }));
    const answer = await gateway.json("/api/models/acme/nothing:Q8_0/ready");
    assert.deepEqual([answer.status, codeOf(answer)], [404, "model_not_found"]);
    await gateway.until("unloaded", ({ models }) =>
      models.every(({ conditions }) => conditions.every(({ reason }) => reason !== "Loaded")),
    );
    assert.deepEqual(await readiness(gateway, `/api/models/${good}/ready`), [200, good, "ok", "OnDemand"]);
  });
});

test("no router: the gateway is not ready, and no model is; a key is needed to ask for one", async (t) => {
  const folders = await makeFolders(t);
  const model = await cacheTalker(folders, "acme/alpha");
  const gateway = await startTestGateway(t, {
    folders,
    yaml: `version: 1\nmodels: ["${model}"]\n`,
    flags: ["--llama-server", `${folders.root}/nothing`],
    environment: { GATEWAY_LICENSE_KEY: key },
  });
  await gateway.until("looked for", ({ conditions }) => conditions.some(({ reason }) => reason === "EngineMissing"));
  const headers = { authorization: `Bearer ${key}` };
  assert.equal((await gateway.json(`/api/models/${model}/ready`)).status, 401);
  const one = await gateway.json(`/api/models/${model}/ready`, { headers });
  assert.deepEqual([one.status, one.body["reason"]], [503, "EngineMissing"]);
  const all = await gateway.json("/readyz");
  assert.deepEqual([all.status, all.body["reason"]], [503, "EngineMissing"]);
  assert.equal(conditionIn(gateway, "Healthy"), "False EngineMissing");
});
