// Between the last byte of a pull and its answer: the router has to list the model, and is waited for, but not for ever.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { cleanUp } from "../support/clean-up.ts";
import { startTestGateway, type TestGateway } from "../support/gateway.ts";
import { type LoopbackHub, startLoopbackHub } from "../support/loopback-hub.ts";
import { answersOf, modelBytes, talkingModel } from "../support/models.ts";
import { type PullRecord, streamPull } from "../support/pull-stream.ts";

const model = "acme/late:Q8_0";

interface Frozen {
  readonly gateway: TestGateway;
  readonly hub: LoopbackHub;
  /** Lets the router go on. */
  thaw(): void;
}

/** A gateway whose router has come to a halt, and a hub that has the model. */
async function startFrozen(t: TestContext): Promise<Frozen> {
  const hub = await startLoopbackHub(t);
  hub.addRepo("acme/late", { files: { "late-Q8_0.gguf": modelBytes(talkingModel("late")) } });
  const gateway = await startTestGateway(t, {
    yaml: "version: 1\n",
    environment: { HF_ENDPOINT: hub.endpoint },
    // What hangs is not restarted meanwhile, and what waits besides the pull waits for another time than it does.
    flags: ["--silence-limit", "3600", "--wait-timeout", "600", "--start-timeout", "600", "--resync", "3600"],
  });
  const { router } = await gateway.converged();
  const pid = router.pid ?? assert.fail("no router");
  const thaw = (): void => void process.kill(pid, "SIGCONT");
  process.kill(pid, "SIGSTOP");
  cleanUp(t, thaw);
  return { gateway, hub, thaw };
}

/** A pull, and when all its bytes are there. */
function begin(gateway: TestGateway): { readonly fetched: Promise<void>; readonly ended: Promise<PullRecord[]> } {
  let ended: Promise<PullRecord[]> | null = null;
  const fetched = new Promise<void>((resolve) => {
    ended = streamPull(gateway, model, {
      onRecord: ({ status }) => {
        if (status === "writing manifest") resolve();
      },
    });
  });
  return { fetched, ended: ended ?? assert.fail() };
}

async function isInDocument(gateway: TestGateway): Promise<boolean> {
  return JSON.stringify((await gateway.json("/api/desired")).body["document"]).includes(model);
}

test("interface 8, Router after a pull: the answer comes when the router lists the model, and not before", async (t) => {
  const { gateway, thaw } = await startFrozen(t);
  const { fetched, ended } = begin(gateway);
  await fetched;
  let listedThen: Promise<boolean> | null = null;
  const answered = ended.then((records) => {
    listedThen = gateway
      .json("/beta/v1/models")
      .then(({ body }) => (body["data"] as { id: string }[]).some(({ id }) => id === model));
    return records;
  });
  // The gateway answers others meanwhile, and this one has no end yet.
  await gateway.json("/status");
  assert.equal(listedThen, null);
  thaw();
  assert.deepEqual((await answered).at(-1), { status: "success" });
  assert.equal(await listedThen, true);
  assert.equal(await gateway.ask(model), answersOf("late").hello);
});

test("interface 8, Router after a pull: after 60 s without it the pull ends in an error, and the model stays wanted", async (t) => {
  const { gateway, hub, thaw } = await startFrozen(t);
  // That minute is over at once; every other time is as long as it is.
  const real = globalThis.setTimeout;
  const shortened = (run: (...args: unknown[]) => void, ms?: number, ...args: unknown[]): NodeJS.Timeout =>
    real(() => run(...args), ms === 60_000 ? 300 : ms);
  const minutes = t.mock.method(globalThis, "setTimeout", shortened as typeof setTimeout);
  const records = await begin(gateway).ended;
  minutes.mock.restore();
  assert.match(records.at(-1)?.error ?? "", /not reached within 60000 ms/);
  assert.ok(!records.some(({ status }) => status === "success"));
  assert.ok(await isInDocument(gateway));

  thaw();
  await gateway.converged();
  const requests = hub.requests.length;
  assert.deepEqual((await begin(gateway).ended).at(-1), { status: "success" });
  assert.equal(hub.requests.length, requests);
  assert.equal(await gateway.ask(model), answersOf("late").hello);
});
