// Clients that want different context sizes of one model at the same time: each answer is given under its own client's size.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { cacheTalker, makeFolders } from "../support/folders.ts";
import { eventsOf, startTestGateway, type TestGateway } from "../support/gateway.ts";
import { chatWith, postWith } from "../support/requests.ts";

const alpha = "acme/alpha:Q8_0";
const chatPath = "/v1/chat/completions";

async function start(t: TestContext, flags: readonly string[] = []): Promise<TestGateway> {
  const folders = await makeFolders(t);
  await cacheTalker(folders, "acme/alpha");
  const yaml = `version: 1\nmodels: [{ id: "${alpha}", preset: { threads: 1 } }]\n`;
  const gateway = await startTestGateway(t, { folders, yaml, flags });
  await gateway.converged();
  await gateway.ask(alpha);
  return gateway;
}

/** Status and `x-context-size`. */
async function ask(gateway: TestGateway, size: number, content = "hi"): Promise<readonly [number, number]> {
  const { status, headers } = await gateway.json(chatPath, chatWith(alpha, content, { num_ctx: size }));
  return [status, Number(headers.get("x-context-size"))];
}

function reloads(gateway: TestGateway): number {
  return eventsOf(gateway.gateway, "action.finished").filter(({ data }) =>
    JSON.stringify(data).includes("router.reload"),
  ).length;
}

test("interface 4, Context size: chats with different sizes wait for each other's change, and each has its own", async (t) => {
  const gateway = await start(t);
  const before = reloads(gateway);
  const sizes = [512, 1024, 512, 2048, 1024, 2048, 4096, 512];
  const answers = await Promise.all(sizes.map((size) => ask(gateway, size)));
  assert.deepEqual(
    answers,
    sizes.map((size) => [200, size]),
  );
  assert.equal(reloads(gateway) - before, 4, "one change for all who ask for the same");
});

test("a long prompt is answered under the size that its client asked for, beside clients that ask for small ones", async (t) => {
  const gateway = await start(t);
  // 1528 tokens: refused under either of the other sizes.
  const long = "word ".repeat(300);
  const client = async (size: number, content: string): Promise<void> => {
    for (let count = 0; count < 4; count++) assert.deepEqual(await ask(gateway, size, content), [200, size]);
  };
  let over = false;
  const plain = async (): Promise<void> => {
    while (!over) await gateway.ask(alpha);
  };
  const beside = plain();
  await Promise.all([client(4096, long), client(256, "hi"), client(512, "hi")]);
  over = true;
  await beside;
});

test("loading and embedding with a size take their turn too", async (t) => {
  const gateway = await start(t);
  const options = (size: number): object => ({ model: alpha, options: { num_ctx: size } });
  const [load, embed, chat] = await Promise.all([
    gateway.json("/api/generate", postWith(options(512))),
    gateway.json("/api/embed", postWith({ ...options(1024), input: [] })),
    ask(gateway, 2048),
  ]);
  assert.deepEqual([load.status, embed.status, chat], [200, 200, [200, 2048]]);
  const set = eventsOf(gateway.gateway, "action.finished").filter(({ data }) =>
    JSON.stringify(data).includes("preset.write"),
  );
  assert.ok(set.length >= 3, "each was put in force");
});
