// The ports that engines get.
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { test } from "node:test";
import { freePort, portsInUse, tryPort } from "../../../../src/engines/process/free-port.ts";

/** A port on which a server has ended its only connection, and is gone. */
async function leftPort(): Promise<number> {
  const server = createServer((socket) => socket.end());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  await once(connect(port, "127.0.0.1").resume(), "close");
  server.close();
  await once(server, "close");
  return port;
}

test("a free port is one that can be listened at, chosen at random", async () => {
  const ports = await Promise.all(Array.from({ length: 10 }, freePort));
  for (const port of ports) assert.equal(await tryPort("127.0.0.1", port), port);
  assert.ok(new Set(ports).size > 5, ports.join());
});

test("a port is in use while the system keeps a closed connection of it, where the system tells", async () => {
  const port = await leftPort();
  // Node may listen there: it cannot tell.
  assert.equal(await tryPort("127.0.0.1", port), port);
  assert.equal((await portsInUse()).has(port), process.platform === "linux");
});
