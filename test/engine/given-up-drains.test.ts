// Changes that wait for answers and are given up meanwhile: taken back, overtaken by the router's end or by another change, or
// by the gateway's own stop. No answer is cut for what is not done.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { cleanUp } from "../support/clean-up.ts";
import { cacheModel, cacheTalker, makeFolders } from "../support/folders.ts";
import { startTestGateway, streamChat, type TestGateway } from "../support/gateway.ts";
import { answersOf, modelBytes, slowModel } from "../support/models.ts";
import { patchWith } from "../support/requests.ts";

const slow = "acme/slow:Q8_0";

interface Endless {
  readonly gateway: TestGateway;
  readonly other: string;
  pieces(): number;
  readonly stream: ReturnType<typeof streamChat>;
}

/** A gateway with a stream of the slow model that does not end. */
async function answering(t: TestContext): Promise<Endless> {
  const folders = await makeFolders(t);
  await cacheModel(folders, "acme/slow", "slow-Q8_0.gguf", modelBytes(slowModel("slow")));
  const other = await cacheTalker(folders, "acme/other");
  const models = `{ id: "${slow}", ctxSize: 512, preset: { threads: 1 } }`;
  const gateway = await startTestGateway(t, {
    folders,
    yaml: `version: 1\nmodels: [${models}]\n`,
    flags: ["--drain-timeout", "300", "--stop-grace", "0.1"],
  });
  await gateway.converged();
  let pieces = 0;
  let begun: () => void = () => undefined;
  const isBegun = new Promise<void>((resolve) => {
    begun = resolve;
  });
  const stream = streamChat(gateway.url, slow, "forever", () => {
    pieces++;
    begun();
  });
  stream.catch(() => undefined);
  cleanUp(t, () => stream.catch(() => null));
  cleanUp(t, () => gateway.gateway.stop());
  await isBegun;
  return { gateway, other, stream, pieces: () => pieces };
}

function isDraining({ gateway }: TestGateway): boolean {
  return gateway.status().running.some((action) => (action as { kind: string }).kind === "router.reload");
}

async function changeSize(gateway: TestGateway, ctxSize: number, id = slow): Promise<void> {
  await gateway.json("/api/desired", patchWith({ models: { [id]: { ctxSize } } }));
}

async function untilMore(gateway: TestGateway, { pieces }: Pick<Endless, "pieces">): Promise<void> {
  const before = pieces();
  await gateway.until("the answer goes on", () => pieces() > before + 5);
}

test("a change that is taken back while it drains cuts nobody, and lets in who waits", async (t) => {
  const { gateway, pieces } = await answering(t);
  await changeSize(gateway, 1024);
  await gateway.until("it drains", () => isDraining(gateway));
  const waits = gateway.ask(slow);
  await changeSize(gateway, 512);
  assert.equal(await waits, answersOf("slow").hello);
  await gateway.until("nothing is left to do", ({ running, sync }) => running.length === 0 && sync === "Synced");
  await untilMore(gateway, { pieces });
  assert.equal(gateway.gateway.status().inFlight[slow], 1);
});

test("a router that is killed while a change drains is back at once, for everybody", async (t) => {
  const { gateway, other, pieces } = await answering(t);
  await changeSize(gateway, 1024);
  await gateway.until("it drains", () => isDraining(gateway));
  const { pid } = gateway.gateway.status().router;
  assert.ok(pid !== null);
  process.kill(pid, "SIGKILL");
  const began = performance.now();
  assert.equal(await gateway.ask(other), answersOf("acme/other").hello);
  assert.ok(performance.now() - began < 120_000, "it took no drain");
  await untilMore(gateway, { pieces });
});
