// Pulls over bad lines and strange servers: they end with the right file, and what was there is not fetched again.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { createServer } from "node:http";
import { describe, it } from "node:test";
import { GatewayError } from "../../../../src/core/errors.ts";
import { createHubClient } from "../../../../src/hub/client.ts";
import { withGgufHead } from "../../../support/cache-folder.ts";
import { cleanUp } from "../../../support/clean-up.ts";
import { startPulling } from "../../../support/pulling.ts";

const size = 3_000_000;
const path = "demo-Q8_0.gguf";
const id = "acme/demo-GGUF:Q8_0";
const files = { [path]: withGgufHead(randomBytes(size)) };
/** Several connections although the file is small. */
const several = {
  connections: 4,
  pieceBytes: 256 * 1024,
  leastBytes: 64 * 1024,
  lookMs: 10,
  recordBytes: 128 * 1024,
  gatherBytes: 64 * 1024,
};
const stopping = new GatewayError("shutting_down", "bye");

describe("a pull over a bad line", () => {
  it("goes on where the connection broke, as often as it takes", async (t) => {
    const { hub, pull, shown, world } = await startPulling(t);
    hub.addRepo("acme/demo-GGUF", { files });
    hub.dropAfter(path, 200_000, 14);
    assert.equal((await pull(id)).downloadedBytes, size);
    assert.deepEqual(await shown("acme/demo-GGUF", path), files[path]);
    assert.equal(hub.sentBytes(path), size);
    assert.equal(
      (await world()).some((line) => line.includes("incomplete")),
      false,
    );
  });

  it("connects again after a standstill", async (t) => {
    const { hub, pull, shown } = await startPulling(t, { stallMs: 100 });
    hub.addRepo("acme/demo-GGUF", { files });
    const hold = hub.throttle(path, 1_000_000);
    await pull(id);
    await hold.left;
    hold.release();
    assert.deepEqual(await shown("acme/demo-GGUF", path), files[path]);
    assert.equal(hub.sentBytes(path), size);
  });

  it("uses several connections where each is slow, and each byte comes once", async (t) => {
    const { hub, pull, shown } = await startPulling(t);
    hub.addRepo("acme/demo-GGUF", { files });
    hub.pace(path, 2_000_000);
    const pulled = await pull(id, { tuning: several });
    // The first is asked for the whole file: alone it would be the only one.
    const connections = hub.requests.filter(({ origin }) => origin === "storage").length;
    assert.ok(connections > several.connections, `${connections} requests for pieces`);
    assert.equal(pulled.downloadedBytes, size);
    assert.deepEqual(await shown("acme/demo-GGUF", path), files[path]);
    const asked = hub.requests.filter((request) => request.path.includes("/resolve/"));
    assert.equal(asked.length, 1, "the hub is asked once, its storage for every piece");
  });

  it("does not wait for a connection that was told to wait when the others have everything", async (t) => {
    const { hub, pull, shown } = await startPulling(t);
    hub.addRepo("acme/demo-GGUF", { files });
    hub.pace(path, 2_000_000);
    let seen = 0;
    const headers = { "Retry-After": "60" };
    hub.failNext({ status: 429, headers, times: 2, match: ({ range }) => range !== undefined && seen++ > 2 });
    const started = Date.now();
    await pull(id, { tuning: several });
    assert.ok(Date.now() - started < 50_000, "the wait that was asked for is 60 s");
    assert.deepEqual(await shown("acme/demo-GGUF", path), files[path]);
  });

  it("asks the hub again when the storage's address is good no more", async (t) => {
    const { hub, pull, shown } = await startPulling(t);
    hub.addRepo("acme/demo-GGUF", { files });
    hub.dropAfter(path, 1_000_000);
    let seen = 0;
    hub.failNext({ status: 403, match: (request) => request.origin === "storage" && ++seen === 2 });
    await pull(id);
    assert.deepEqual(await shown("acme/demo-GGUF", path), files[path]);
    assert.equal(hub.requests.filter((request) => request.path.includes("/resolve/")).length, 2);
  });

  it("waits as the hub asks for, and goes on", async (t) => {
    const { hub, pull, refusal } = await startPulling(t);
    hub.addRepo("acme/demo-GGUF", { files });
    hub.failNext({
      status: 429,
      headers: { RateLimit: '"resolvers";r=0;t=1' },
      match: ({ path: asked }) => asked.includes("/resolve/"),
    });
    const started = Date.now();
    await pull(id);
    assert.ok(Date.now() - started >= 990);
    const files2 = { [path]: withGgufHead(randomBytes(1000)) };
    hub.addRepo("acme/other", { files: files2 });
    hub.failNext({ status: 429, headers: { "Retry-After": "600" }, match: ({ path: asked }) => /resolve/.test(asked) });
    const limited = await refusal("acme/other:Q8_0");
    assert.equal(limited.code, "hub_rate_limited");
    assert.equal(limited.retryAfterMs, 600_000);
  });
});

describe("a pull that goes on with an earlier one", () => {
  it("fetches only what is missing, and tells what was there as completed", async (t) => {
    const { hub, pull, refusal, progress, shown, world } = await startPulling(t);
    hub.addRepo("acme/demo-GGUF", { files });
    hub.dropAfter(path, 2_000_000, 1);
    const kept = { isStillWanted: () => true, tuning: { tries: 1, recordBytes: 64 * 1024 } };
    assert.equal((await refusal(id, kept)).code, "hub_unreachable");
    assert.equal((await world()).length, 2);
    progress.length = 0;
    const pulled = await pull(id);
    assert.equal(pulled.resumedBytes, 2_000_000);
    assert.equal(pulled.downloadedBytes, 1_000_000);
    assert.equal(hub.sentBytes(path), size);
    assert.equal(progress.find((step) => step.file === path)?.completed, 2_000_000);
    assert.deepEqual(await shown("acme/demo-GGUF", path), files[path]);
    assert.equal((await world()).length, 3);
  });

  it("fills the gaps that several connections left", async (t) => {
    const { hub, pull, refusal, shown } = await startPulling(t);
    hub.addRepo("acme/demo-GGUF", { files });
    hub.pace(path, 1_500_000);
    const abort = new AbortController();
    const stopped = refusal(id, {
      isStillWanted: () => true,
      tuning: several,
      signal: abort.signal,
      onProgress: ({ completed }) => (completed > size / 2 ? abort.abort(stopping) : undefined),
    });
    assert.equal((await stopped).code, "cancelled");
    const pulled = await pull(id, { tuning: several });
    assert.ok(pulled.resumedBytes > size / 2);
    assert.equal(pulled.resumedBytes + pulled.downloadedBytes, size);
    assert.deepEqual(await shown("acme/demo-GGUF", path), files[path]);
  });

  it("starts over, in one piece, when what was kept proves wrong, and no more than once", async (t) => {
    const { hub, pull, refusal, shown, world } = await startPulling(t);
    hub.addRepo("acme/demo-GGUF", { files });
    hub.lieAboutRanges(path, "wrong bytes");
    const pulled = await pull(id);
    assert.equal(pulled.downloadedBytes, 2 * size);
    assert.deepEqual(await shown("acme/demo-GGUF", path), files[path]);
    hub.addRepo("acme/bad", { files: { "bad-Q8_0.gguf": withGgufHead(randomBytes(size)) } });
    hub.corrupt("bad-Q8_0.gguf");
    const before = await world();
    assert.equal((await refusal("acme/bad:Q8_0", { isStillWanted: () => true })).code, "checksum_mismatch");
    assert.equal(hub.sentBytes("bad-Q8_0.gguf"), 2 * size);
    assert.deepEqual(await world(), before);
  });

  for (const [what, failure, code] of [
    [
      "a page of a captive portal",
      { status: 200, body: "<html>", headers: { "Content-Length": "6" }, times: 2 },
      "checksum_mismatch",
    ],
    ["one that says that the file is not there", { status: 404 }, "hub_not_found"],
    [
      "one of another file",
      { status: 206, body: "x", headers: { "X-Linked-Etag": `"${"0".repeat(64)}"` } },
      "checksum_mismatch",
    ],
  ] as const) {
    it(`keeps what was there where an odd answer comes: ${what}`, async (t) => {
      const { hub, pull, refusal, shown } = await startPulling(t);
      hub.addRepo("acme/demo-GGUF", { files });
      hub.dropAfter(path, 2_000_000, 1);
      const kept = { isStillWanted: () => true, tuning: { tries: 1 } };
      await refusal(id, kept);
      hub.failNext({ ...failure, match: (seen) => seen.path.includes("/resolve/") });
      assert.equal((await refusal(id, kept)).code, code);
      assert.equal((await pull(id)).resumedBytes, 2_000_000);
      assert.equal(hub.sentBytes(path), size);
      assert.deepEqual(await shown("acme/demo-GGUF", path), files[path]);
    });
  }

  for (const lie of ["whole", "shifted", "refused", "other total"] as const) {
    it(`reads from the beginning where a range is answered with: ${lie}`, async (t) => {
      const { hub, pull, refusal, shown } = await startPulling(t);
      hub.addRepo("acme/demo-GGUF", { files });
      hub.dropAfter(path, 1_000_000);
      await refusal(id, { isStillWanted: () => true, tuning: { tries: 1 } });
      hub.lieAboutRanges(path, lie);
      // What is there is read past, not written again.
      assert.equal((await pull(id)).downloadedBytes, 2_000_000);
      assert.deepEqual(await shown("acme/demo-GGUF", path), files[path]);
    });
  }
});

describe("what a token and a proxy see", () => {
  it("sends no token after a redirect that is not relative, not even back to the hub", async (t) => {
    const seen: string[] = [];
    const server = createServer((request, response) => {
      seen.push(`${request.url} ${request.headers.authorization ?? "none"}`);
      const target = {
        "/api/models/a/b/revision/main": "/api/next",
        "/api/next": `http://${request.headers.host}/last`,
      };
      const location = Object.entries(target).find(([from]) => from === request.url)?.[1];
      if (location !== undefined) response.writeHead(307, { location }).end();
      else response.end(JSON.stringify({ sha: "a".repeat(40) }));
    });
    const address = await listening(server);
    cleanUp(t, () => server.close());
    const client = createHubClient({ endpoint: address, token: "hf_secret" });
    cleanUp(t, () => client.close());
    await client.resolveRevision("a/b", "main");
    assert.deepEqual(seen, [
      "/api/models/a/b/revision/main Bearer hf_secret",
      "/api/next Bearer hf_secret",
      "/last none",
    ]);
  });

  it("goes through the proxy that the environment names, but for what NO_PROXY excepts", async (t) => {
    const tunnels: string[] = [];
    const proxy = createServer((_request, response) => response.writeHead(500).end());
    proxy.on("connect", (request, socket) => {
      tunnels.push(request.url ?? "");
      socket.end("HTTP/1.1 502 Bad Gateway\r\n\r\n");
    });
    const address = await listening(proxy);
    cleanUp(t, () => {
      proxy.close();
      proxy.closeAllConnections();
    });
    const ask = async (environment: Record<string, string>): Promise<void> => {
      const client = createHubClient({
        endpoint: "https://hub.invalid",
        token: "hf_secret",
        environment,
        stallMs: 900,
      });
      cleanUp(t, () => client.close());
      await assert.rejects(client.resolveRevision("a/b", "main"), { code: "hub_unreachable" });
    };
    await ask({ HTTPS_PROXY: address });
    assert.deepEqual(tunnels, ["hub.invalid:443"]);
    await ask({ https_proxy: address, NO_PROXY: "hub.invalid" });
    assert.equal(tunnels.length, 1);
    const bad = () =>
      createHubClient({
        endpoint: "https://hub.invalid",
        token: undefined,
        environment: { HTTP_PROXY: "ftp://user:word@x" },
      });
    assert.throws(bad, (error) => error instanceof GatewayError && !error.message.includes("word"));
  });
});

async function listening(server: ReturnType<typeof createServer>): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  assert.ok(address !== null && typeof address === "object");
  return `http://127.0.0.1:${address.port}`;
}
