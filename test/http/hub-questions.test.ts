// Questions to the hub need no license key: how many of them reach it at once, and what becomes of those whose askers leave.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { cleanUp } from "../support/clean-up.ts";
import { startTestGateway } from "../support/gateway.ts";
import { until } from "../support/scratch.ts";

test("a hub that hangs is asked by a few at once, and by nobody once they have left", async (t) => {
  const open = new Set<ServerResponse>();
  let answers: unknown = null;
  let asked = 0;
  const hub = createServer((_request, response) => {
    asked++;
    if (answers !== null) {
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify(answers));
      return;
    }
    open.add(response);
    response.on("close", () => open.delete(response));
  });
  hub.listen(0, "127.0.0.1");
  await once(hub, "listening");
  cleanUp(t, () => {
    hub.closeAllConnections();
    hub.close();
  });
  const gateway = await startTestGateway(t, {
    yaml: "version: 1\n",
    environment: { HF_ENDPOINT: `http://127.0.0.1:${(hub.address() as AddressInfo).port}` },
  });
  const left = new AbortController();
  const statuses: number[] = [];
  const waits: string[] = [];
  const questions = Array.from({ length: 60 }, (_, index) =>
    fetch(`${gateway.url}${index % 2 ? `/api/hf/search?q=word${index}` : `/api/hf/repo-files?repo=acme/m${index}`}`, {
      signal: left.signal,
    }).then(
      async (response) => {
        statuses.push(response.status);
        waits.push(response.headers.get("retry-after") ?? "");
        const { error } = (await response.json()) as { error: { code: string } };
        assert.equal(error.code, "hub_rate_limited");
      },
      (error: Error) => assert.equal(error.name, "AbortError"),
    ),
  );
  await until("what is too much is refused", () => statuses.length === 20);
  assert.deepEqual([new Set(statuses), new Set(waits)], [new Set([429]), new Set(["5"])]);
  await until("eight are asked", () => open.size === 8);
  assert.equal(asked, 8);
  left.abort();
  await Promise.all(questions);
  await until("nobody is asked", () => open.size === 0);
  // Those that waited were not asked either, and there is room again.
  answers = [{ id: "gpt2" }, { id: "acme/x", downloads: 1, likes: 2 }, { id: "../x" }, { id: "<b>/x" }, { id: 5 }];
  const found = await gateway.json("/api/hf/search?q=x");
  assert.deepEqual([found.status, found.body], [200, [{ id: "acme/x", downloads: 1, likes: 2 }]]);
  assert.equal(asked, 9);
});
