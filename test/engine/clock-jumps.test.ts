// The wall clock is set a day on and two days back: no time limit fires, no pause lasts longer, nothing is unloaded.
import assert from "node:assert/strict";
import { test } from "node:test";
import { cleanUp } from "../support/clean-up.ts";
import { cacheTalker, makeTalkerFolders } from "../support/folders.ts";
import { loadedIds, startTestGateway, streamChat } from "../support/gateway.ts";
import { answersOf } from "../support/models.ts";
import { patchWith } from "../support/requests.ts";

const dayMs = 86_400_000;

test("streams, loads, changes and a crash of the router pass over jumps of the clock", async (t) => {
  const wallNow = Date.now;
  let jumpMs = 0;
  Date.now = () => wallNow() + jumpMs;
  cleanUp(t, () => {
    Date.now = wallNow;
  });
  const folders = await makeTalkerFolders(t);
  const alpha = await cacheTalker(folders, "acme/alpha");
  const beta = await cacheTalker(folders, "acme/beta");
  const gateway = await startTestGateway(t, { folders });
  await gateway.converged();
  assert.equal(await gateway.ask(alpha), answersOf("acme/alpha").hello);
  let pieces = 0;
  const stream = await streamChat(gateway.url, "acme/talker:Q8_0", "long", () => {
    pieces++;
    if (pieces === 20) jumpMs = dayMs;
    if (pieces === 60) jumpMs = -2 * dayMs;
  });
  assert.deepEqual(stream, { text: answersOf("talker").long, done: true, error: null });
  assert.deepEqual((await loadedIds(gateway)).toSorted(), [alpha, "acme/talker:Q8_0"].toSorted());

  for (const jump of [dayMs, -dayMs]) {
    jumpMs = jump;
    const patch = patchWith({ models: { [beta]: { ctxSize: jump > 0 ? 1024 : 2048 } } });
    assert.equal((await gateway.json("/api/desired?wait=true", patch)).status, 200);
    assert.equal(await gateway.ask(beta), answersOf("acme/beta").hello);
    const { pid } = gateway.gateway.status().router;
    process.kill(pid ?? 0, "SIGKILL");
    await gateway.until("restarted", ({ router }) => router.connected && router.pid !== pid);
    assert.equal(await gateway.ask(alpha), answersOf("acme/alpha").hello);
  }
});
