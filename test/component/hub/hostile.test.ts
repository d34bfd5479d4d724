// What a hub, or what stands between, must not be able to do: hold a request for ever, fill the memory, have the token shown.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { createServer as createTcpServer, type Server, type Socket } from "node:net";
import { describe, it, type TestContext } from "node:test";
import { tagsOf } from "../../../src/cache/layout/select.ts";
import { GatewayError } from "../../../src/core/errors.ts";
import { createHubClient } from "../../../src/hub/client.ts";
import type { HubHttpOptions } from "../../../src/hub/http.ts";
import { cleanUp } from "../../support/clean-up.ts";
import { slowness } from "../../support/pace.ts";

const token = "hf_abcdefghijklmnopqrstuvwxyz0123456789";

async function listen(t: TestContext, server: Server): Promise<number> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => sockets.add(socket));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanUp(t, () => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const address = server.address();
  assert.ok(address !== null && typeof address === "object");
  return address.port;
}

async function serve(t: TestContext, listener: RequestListener): Promise<string> {
  return `http://127.0.0.1:${await listen(t, createServer(listener))}`;
}

function clientOf(t: TestContext, options: Partial<HubHttpOptions> & { readonly endpoint: string }) {
  const client = createHubClient({ token, ...options });
  cleanUp(t, () => client.close());
  return client;
}

async function failureOf(work: Promise<unknown>): Promise<GatewayError> {
  const error = await work.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof GatewayError, String(error));
  return error;
}

describe("a hub that is none", () => {
  for (const [how, status] of [
    ["an answer", 200],
    ["an error", 503],
    ["a redirect", 302],
  ] as const) {
    it(`does not hold a request by ${how} that comes drop by drop`, async (t) => {
      const endpoint = await serve(t, (_request, response) => {
        response.writeHead(status, status === 302 ? { location: "/other" } : {});
        const drip = setInterval(() => response.write(" "), 20);
        response.on("close", () => clearInterval(drip));
      });
      const error = await failureOf(clientOf(t, { endpoint, stallMs: 150 }).listTree("acme/demo", "main"));
      assert.equal(error.code, "hub_unreachable");
      assert.match(error.message, /response for the file list of acme\/demo took more than/);
    });
  }

  it("does not hold a request by a proxy that never opens its tunnel, nor against being cancelled", async (t) => {
    const port = await listen(t, createTcpServer());
    const client = clientOf(t, {
      endpoint: "https://hub.invalid",
      environment: { HTTPS_PROXY: `http://127.0.0.1:${port}` },
      stallMs: 200,
    });
    assert.match((await failureOf(client.resolveRevision("acme/demo", "main"))).message, /took more than/);
    const leaving = new AbortController();
    const asked = failureOf(client.resolveRevision("acme/demo", "main", leaving.signal));
    leaving.abort();
    assert.equal((await asked).code, "cancelled");
  });

  it("ends a listing without end", async (t) => {
    let page = 0;
    const endpoint = await serve(t, (_request, response) => {
      page++;
      response.setHeader("link", `</next?page=${page}>; rel="next"`);
      response.end(JSON.stringify([{ type: "file", path: `${page}.txt`, oid: "0".repeat(40), size: 1 }]));
    });
    const error = await failureOf(clientOf(t, { endpoint }).listTree("acme/demo", "main"));
    assert.match(error.message, /exceeds the limit/);
    assert.equal(page, 200);
  });

  it("gets the token no more once another origin has said where to go on", async (t) => {
    const seen: [string, boolean][] = [];
    let hub = "";
    const other = await serve(t, (_request, response) => {
      response.setHeader("link", `<${hub}/chosen>; rel="next"`);
      response.end("[]");
    });
    hub = await serve(t, (request, response) => {
      seen.push([request.url ?? "", request.headers.authorization !== undefined]);
      if (request.url === "/chosen") response.end("[]");
      else response.writeHead(302, { location: `${other}/x` }).end();
    });
    await clientOf(t, { endpoint: hub }).listTree("acme/demo", "main");
    assert.deepEqual(seen, [
      ["/api/models/acme/demo/tree/main?recursive=true", true],
      ["/chosen", false],
    ]);
  });

  it("that echoes the token shows no part of it, wherever its words are cut", async (t) => {
    let words = "";
    const endpoint = await serve(t, (request, response) => {
      const echo = request.headers.authorization ?? "";
      response.writeHead(403, words.length < 1_000 ? { "x-error-message": words + echo } : {});
      response.end(JSON.stringify({ error: words + echo }));
    });
    const client = clientOf(t, { endpoint });
    for (const length of [0, 150, 165, 185, 199]) {
      words = "x".repeat(length);
      const { message } = await failureOf(client.listTree("acme/demo", "main"));
      assert.equal(message.includes(token.slice(0, 8)), false, message);
    }
  });

  for (const header of ["Fri, 31 Dec 9999 23:59:59 GMT", "99999999999", "9".repeat(400)]) {
    it(`is asked again after an hour, though it says ${header.slice(0, 32)}`, async (t) => {
      const endpoint = await serve(t, (_request, response) => {
        response.writeHead(429, { "retry-after": header }).end();
      });
      const error = await failureOf(clientOf(t, { endpoint }).listTree("acme/demo", "main"));
      assert.equal(error.retryAfterMs, 3_600_000);
      assert.match(error.message, /asks to wait 3600 s/);
    });
  }

  it("holds up nobody with twenty thousand names", () => {
    const tree = Array.from({ length: 20_000 }, (_, at) => ({
      path: `m-Q8_0-${String(at + 1).padStart(5, "0")}-of-20000.gguf`,
      size: 1,
      oid: "0".repeat(40),
    }));
    const before = process.cpuUsage();
    assert.deepEqual(tagsOf(tree), ["Q8_0"]);
    // It took 1.6 s when each name copied all that came before it; it takes 0.1 s.
    assert.ok(process.cpuUsage(before).user < 1_000_000 * slowness());
  });
});
