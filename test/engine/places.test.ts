// Pinned models: no other model, no idle time ends them, and where all are pinned the others are refused.
import assert from "node:assert/strict";
import { test } from "node:test";
import { cacheTalker, makeFolders } from "../support/folders.ts";
import { eventsOf, loadedIds, startTestGateway, untilLoaded } from "../support/gateway.ts";
import { codeOf } from "../support/own-calls.ts";
import { chatWith, patchWith } from "../support/requests.ts";

test("a pinned model is evicted for none, the least recently used of the others is", async (t) => {
  const folders = await makeFolders(t);
  const [pinned, b, c] = await Promise.all(["acme/a", "acme/b", "acme/c"].map((repo) => cacheTalker(folders, repo)));
  assert.ok(pinned !== undefined && b !== undefined && c !== undefined);
  const gateway = await startTestGateway(t, {
    folders,
    yaml: `version: 1\nmodels: [{ id: "${pinned}", pinned: true }]\n`,
    flags: ["--models-max", "2", "--keep-alive", "4"],
  });
  await gateway.converged();
  for (const id of [pinned, b, c]) await gateway.ask(id);
  await untilLoaded(gateway, pinned, c);

  await t.test("nor unloaded for lack of use, or by a request's word", async () => {
    await gateway.json("/api/chat", chatWith(pinned, "hi", { stream: false, keep_alive: 0 }));
    const isUnloaded = `"model":"${c}"`;
    await gateway.until("the other has gone", () =>
      eventsOf(gateway.gateway, "model").some(
        ({ data }) => JSON.stringify(data).includes(isUnloaded) && JSON.stringify(data).includes('"unloaded"'),
      ),
    );
    await untilLoaded(gateway, pinned);
  });
  await t.test("with every place pinned the others are refused, in each family's shape, until one is not", async () => {
    const both = { models: { [pinned]: { pinned: true }, [b]: { pinned: true } } };
    assert.equal((await gateway.json("/api/desired?wait=true", patchWith(both))).status, 200);
    await gateway.ask(b);
    const compat = await gateway.json("/v1/chat/completions", chatWith(c));
    assert.deepEqual([compat.status, codeOf(compat), compat.headers.get("retry-after")], [503, "busy", "30"]);
    const native = await gateway.json("/api/chat", chatWith(c));
    assert.equal(native.status, 503);
    assert.match(
      String(native.body["error"]),
      /^no model slot for acme\/c:Q8_0: --models-max is 2, and all hold pinned models$/,
    );
    await untilLoaded(gateway, pinned, b);
    await gateway.json("/api/desired?wait=true", patchWith({ models: { [b]: { pinned: null } } }));
    await gateway.ask(c);
    await untilLoaded(gateway, pinned, c);
  });
  await t.test("somebody may eject it", async () => {
    const { status } = await gateway.json("/v1/models/unload", { ...chatWith(pinned), method: "POST" });
    assert.equal(status, 200);
    assert.ok(!(await loadedIds(gateway)).includes(pinned));
  });
});
