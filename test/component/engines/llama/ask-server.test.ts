// A question over a connection of its own: its answer, and how it fails.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { askServer } from "../../../../src/engines/llama/ask-server.ts";
import { freePort } from "../../../../src/engines/process/free-port.ts";
import { cleanUp } from "../../../support/clean-up.ts";

async function serverThat(t: TestContext, answers: RequestListener): Promise<{ origin: string; key: string }> {
  const server = createServer(answers).listen(0, "127.0.0.1");
  cleanUp(t, async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  });
  await once(server, "listening");
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, key: "secret" };
}

test("GET without a body, POST with one, the key with both, and the whole answer", async (t) => {
  const server = await serverThat(t, (request, response) => {
    response.writeHead(request.method === "GET" ? 404 : 200);
    response.write(`${request.method} ${request.url} ${request.headers.authorization} `);
    request.pipe(response);
  });
  assert.deepEqual(await askServer(server, { path: "/a" }), { status: 404, text: "GET /a Bearer secret " });
  const posted = { status: 200, text: 'POST /b Bearer secret {"n":"é"}' };
  assert.deepEqual(await askServer(server, { path: "/b", body: { n: "é" } }), posted);
});

test("what gives no answer, closes the connection or is not there is an error", async (t) => {
  const server = await serverThat(t, (request, response) => {
    if (request.url === "/close") response.socket?.end();
    else if (request.url === "/half") response.writeHead(200, { "content-length": 9 }).write("half");
  });
  await assert.rejects(askServer(server, { path: "/silent" }, 50), /no response within 50 ms/);
  await assert.rejects(askServer(server, { path: "/half" }, 50), /no response within 50 ms/);
  await assert.rejects(askServer(server, { path: "/close" }), /the connection was closed/);
  const absent = { origin: `http://127.0.0.1:${await freePort()}`, key: "" };
  await assert.rejects(askServer(absent, { path: "/" }), { code: "ECONNREFUSED" });
});
