// The hub client by itself: search, ranges, and answers that no hub gives.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { describe, it } from "node:test";
import { GatewayError } from "../../../src/core/errors.ts";
import { createHubClient } from "../../../src/hub/client.ts";
import { startPulling } from "../../support/pulling.ts";

const demo = { "demo-Q8_0.gguf": Buffer.alloc(3_000_000, "eight ") };

describe("the hub client", () => {
  it("searches for GGUF repositories over several pages, up to the limit", async (t) => {
    const { hub, client } = await startPulling(t, { pageSize: 2 });
    for (const n of [1, 2, 3, 4]) hub.addRepo(`acme/demo${n}`, { files: demo, downloads: n, likes: 10 * n });
    hub.addRepo("acme/demo-other", { files: { "model.safetensors": Buffer.from("no") }, downloads: 99 });
    assert.deepEqual(
      await client.searchModels("demo", { limit: 3 }),
      [4, 3, 2].map((n) => ({ id: `acme/demo${n}`, downloads: n, likes: 10 * n })),
    );
    assert.deepEqual(await client.searchModels("nothing", { limit: 3 }), []);
  });

  it("searches with licenses: the hub's ids for them, or the name that the card has", async (t) => {
    const { hub, client } = await startPulling(t);
    hub.addRepo("acme/demo1", { files: demo, downloads: 3, card: { license: "apache-2.0" } });
    hub.addRepo("acme/demo2", { files: demo, downloads: 2, card: { license: "other", license_name: "acme-1" } });
    hub.addRepo("acme/demo3", { files: demo, downloads: 1 });
    assert.deepEqual(
      (await client.searchModels("demo", { limit: 3, license: true })).map(({ license }) => license),
      ["apache-2.0", "acme-1", null],
    );
  });

  it("opens a file from where it is asked to", async (t) => {
    const { hub, client } = await startPulling(t);
    const commit = hub.addRepo("acme/demo-GGUF", { files: demo });
    const opened = await client.openFile("acme/demo-GGUF", commit, "demo-Q8_0.gguf", {
      from: 2_999_990,
      signal: new AbortController().signal,
    });
    const chunks: Buffer[] = [];
    for await (const chunk of opened.body) chunks.push(chunk as Buffer);
    assert.deepEqual(Buffer.concat(chunks), demo["demo-Q8_0.gguf"].subarray(2_999_990));
    assert.equal(opened.from, 2_999_990);
    assert.equal(opened.total, 3_000_000);
    assert.equal(opened.sha256?.length, 64);
  });

  it("says when what answers is no hub, redirects in circles, or is not there", async (t) => {
    const server = createServer((request, response) => {
      if (request.url?.includes("circle")) response.writeHead(302, { location: request.url }).end();
      else response.end("<html>welcome</html>");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    t.after(() => server.close());
    const address = server.address();
    assert.ok(address !== null && typeof address === "object");
    const client = createHubClient({ endpoint: `http://127.0.0.1:${address.port}/`, token: undefined });
    t.after(() => client.close());
    const unreachable = (pattern: RegExp) => (error: unknown) =>
      error instanceof GatewayError && error.code === "hub_unreachable" && pattern.test(error.message);
    await assert.rejects(client.resolveRevision("acme/demo", "main"), unreachable(/check HF_ENDPOINT/));
    await assert.rejects(client.resolveRevision("acme/circle", "main"), unreachable(/more than 10 times/));
    await new Promise((resolve) => {
      server.close(resolve);
      server.closeAllConnections();
    });
    const later = createHubClient({ endpoint: `http://127.0.0.1:${address.port}`, token: undefined });
    t.after(() => later.close());
    assert.equal(later.reachability().status, "unknown");
    await assert.rejects(
      later.resolveRevision("acme/demo", "main"),
      unreachable(/^cannot reach the hub \(127\.0\.0\.1:\d+ refuses connections\)$/),
    );
    assert.equal(later.reachability().status, "unreachable");
    const nowhere = createHubClient({ endpoint: "http://no-such-hub.invalid", token: undefined });
    t.after(() => nowhere.close());
    await assert.rejects(
      nowhere.resolveRevision("acme/demo", "main"),
      unreachable(/^cannot reach the hub \(no-such-hub\.invalid does not resolve\); is this machine online\?$/),
    );
  });
});
