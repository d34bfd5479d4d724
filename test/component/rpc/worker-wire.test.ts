// What is asked of a worker, and what becomes of peers that are none: nothing they answer may harm or hang the asker.
import assert from "node:assert/strict";
import type { Socket } from "node:net";
import { test } from "node:test";
import { freePort } from "../../../src/engines/process/free-port.ts";
import { speak, type Target, WorkerFault } from "../../../src/rpc/worker-wire.ts";
import { startWorkers } from "../../support/rpc-worker.ts";
import { framed, startPeer, startPolitePeer } from "../../support/worker-peer.ts";

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

async function faultOf(target: Target): Promise<string> {
  const fault: unknown = await speak(target, 2_000).catch((error: unknown) => error);
  assert.ok(fault instanceof WorkerFault);
  return fault.reason;
}

const strangers: readonly (readonly [string, (socket: Socket) => void])[] = [
  ["hangs up", (socket) => socket.end()],
  ["speaks HTTP", (socket) => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n")],
  ["announces more than there is memory", (socket) => socket.write(Buffer.alloc(64, 0xff))],
  ["says too little", (socket) => socket.write(framed(Buffer.from([8])))],
  [
    "claims a million devices",
    (socket) => socket.write(Buffer.concat([framed(Buffer.alloc(28)), framed(Buffer.from([0x40, 0x42, 0x0f, 0]))])),
  ],
];

/** Without end: as soon as there is room, the next one. */
function pour(socket: Socket, frame: Buffer): void {
  while (!socket.destroyed && socket.write(frame));
  socket.once("drain", () => pour(socket, frame));
}

const endless: readonly (readonly [string, (socket: Socket) => void])[] = [
  ["answers on and on", (socket) => pour(socket, framed(Buffer.alloc(4000, 7)))],
  ["announces more than there is memory and stays", (socket) => socket.write(Buffer.alloc(64, 0xff))],
  [
    "announces an answer that never ends",
    (socket) => pour(socket, Buffer.concat([Buffer.from([0, 16, 0, 0, 0, 0, 0, 0]), Buffer.alloc(8192)])),
  ],
  [
    "answers like a worker and then on and on",
    (socket) => {
      const facts = [Buffer.from([8, 0, 1]), Buffer.from([1, 0, 0, 0]), Buffer.alloc(16, 1)];
      socket.write(Buffer.concat(facts.map(framed)));
      socket.on("data", () => setImmediate(() => pour(socket, framed(Buffer.alloc(4000)))));
    },
  ],
];

for (const [what, onClient] of endless) {
  test(`a peer that ${what} is let go of, every time`, async (t) => {
    const peer = await startPeer(t, onClient);
    for (let round = 0; round < 5; round++) await speak(peer, 2_000).catch(() => undefined);
    while (peer.open() > 0) await new Promise(setImmediate);
  });
}

test("a peer that answers as it should is let go of too", async (t) => {
  const peer = await startPolitePeer(t);
  const spoken = await speak(peer, 2_000);
  assert.ok(spoken.kind === "answered");
  assert.deepEqual([spoken.facts.version, spoken.facts.devices.length], ["8.0.0", 1]);
  while (peer.open() > 0) await new Promise(setImmediate);
});

for (const [what, onClient] of strangers) {
  test(`a peer that ${what} is no worker`, async (t) => {
    assert.equal(await faultOf(await startPeer(t, onClient)), "NotAWorker");
  });
}

test("an answer in single bytes is an answer", async (t) => {
  const bytes = Buffer.concat([
    framed(Buffer.from([8, 0, 1])),
    framed(Buffer.from([1, 0, 0, 0])),
    framed(Buffer.alloc(16, 1)),
  ]);
  const target = await startPeer(t, (socket) => {
    socket.setNoDelay(true);
    for (const byte of bytes) socket.write(Buffer.from([byte]));
  });
  const spoken = await speak(target, 2_000);
  assert.ok(spoken.kind === "answered");
  assert.deepEqual([spoken.facts.version, spoken.facts.devices.length], ["8.0.1", 1]);
});

test("one that says nothing is left with the question open until it answers", async (t) => {
  let asked: Socket | null = null;
  const target = await startPeer(t, (socket) => {
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
  assert.equal(await faultOf({ host: "127.0.0.1", port: await freePort() }), "Refused");
});
