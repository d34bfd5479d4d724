// What is asked of a worker, and what becomes of peers that are none: nothing they answer may harm or hang the asker.
import assert from "node:assert/strict";
import { createServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { freePort } from "../../src/engines/free-port.ts";
import { speak } from "../../src/observe/worker-wire.ts";
import { cleanUp } from "../support/clean-up.ts";
import { startWorkers } from "../support/rpc-worker.ts";

async function peer(t: TestContext, onClient: (socket: Socket) => void): Promise<{ host: string; port: number }> {
  const port = await freePort();
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    onClient(socket);
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  cleanUp(t, () => {
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => server.close(resolve));
  });
  return { host: "127.0.0.1", port };
}

function answer(content: Uint8Array): Buffer {
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(content.length));
  return Buffer.concat([size, content]);
}

test("a real worker tells its version and memory, over and over", async (t) => {
  const [worker] = await startWorkers(t, 1);
  const port = Number(worker?.address.split(":")[1]);
  for (let round = 0; round < 5; round++) {
    const spoken = await speak({ host: "127.0.0.1", port }, 2_000);
    assert.equal(spoken.kind, "answered");
    if (spoken.kind !== "answered") return;
    assert.match(spoken.facts.version, /^\d+\.\d+\.\d+$/);
    assert.ok(spoken.facts.devices.every(({ freeBytes, totalBytes }) => totalBytes > 0 && freeBytes <= totalBytes));
  }
});

const strangers: readonly (readonly [string, (socket: Socket) => void])[] = [
  ["hangs up", (socket) => socket.end()],
  ["speaks HTTP", (socket) => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n")],
  ["announces more than there is memory", (socket) => socket.write(Buffer.alloc(64, 0xff))],
  ["says too little", (socket) => socket.write(answer(Buffer.from([8])))],
  [
    "claims a million devices",
    (socket) => socket.write(Buffer.concat([answer(Buffer.alloc(28)), answer(Buffer.from([0x40, 0x42, 0x0f, 0]))])),
  ],
];

for (const [what, onClient] of strangers) {
  test(`a peer that ${what} is no worker`, async (t) => {
    const spoken = await speak(await peer(t, onClient), 2_000);
    assert.deepEqual([spoken.kind, "reason" in spoken && spoken.reason], ["failed", "NotAWorker"]);
  });
}

test("an answer in single bytes is an answer", async (t) => {
  const bytes = Buffer.concat([
    answer(Buffer.from([8, 0, 1])),
    answer(Buffer.from([1, 0, 0, 0])),
    answer(Buffer.alloc(16, 1)),
  ]);
  const target = await peer(t, (socket) => {
    socket.setNoDelay(true);
    for (const byte of bytes) socket.write(Buffer.from([byte]));
  });
  const spoken = await speak(target, 2_000);
  assert.ok(spoken.kind === "answered");
  assert.deepEqual([spoken.facts.version, spoken.facts.devices.length], ["8.0.1", 1]);
});

test("one that says nothing is left with the question open until it answers", async (t) => {
  let asked: Socket | null = null;
  const target = await peer(t, (socket) => {
    asked = socket;
  });
  const spoken = await speak(target, 50);
  assert.ok(spoken.kind === "silent");
  const client = asked as Socket | null;
  assert.equal(client?.destroyed, false);
  client?.end();
  await spoken.over;
});

test("nobody there is a refusal", async () => {
  const spoken = await speak({ host: "127.0.0.1", port: await freePort() }, 2_000);
  assert.deepEqual([spoken.kind, "reason" in spoken && spoken.reason], ["failed", "Refused"]);
});
