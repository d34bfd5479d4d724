// Peers that pretend to be RPC workers: what they answer is the test's business.
import { createServer, type Socket } from "node:net";
import type { TestContext } from "node:test";
import { freePort } from "../../src/engines/process/free-port.ts";
import type { Target } from "../../src/rpc/worker-wire.ts";
import { cleanUp } from "./clean-up.ts";

export interface WorkerPeer extends Target {
  /** HOST:PORT */
  readonly address: string;
  /** Connections that are open now. */
  open(): number;
}

/** Listens on loopback until the test ends. */
export async function startPeer(t: TestContext, onClient: (socket: Socket) => void): Promise<WorkerPeer> {
  const port = await freePort();
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    socket.on("error", () => undefined);
    onClient(socket);
    // Of a socket that nobody reads from, nobody hears the end.
    socket.resume();
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  cleanUp(t, () => {
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => server.close(resolve));
  });
  return { host: "127.0.0.1", port, address: `127.0.0.1:${port}`, open: () => sockets.size };
}

/** An answer as a worker frames it. */
export function framed(content: Uint8Array): Buffer {
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(content.length));
  return Buffer.concat([size, content]);
}

/** Answers like a worker of another version, or with other devices, as long as it is asked no more than that. */
export function startPolitePeer(
  t: TestContext,
  { version = [8, 0, 0], devices = 1 }: { readonly version?: readonly number[]; readonly devices?: number } = {},
): Promise<WorkerPeer> {
  return startPeer(t, (socket) => {
    let buffered = Buffer.alloc(0);
    socket.on("data", (chunk: Buffer) => {
      buffered = Buffer.concat([buffered, chunk]);
      for (;;) {
        const size = buffered.length < 9 ? Number.POSITIVE_INFINITY : Number(buffered.readBigUInt64LE(1));
        if (buffered.length < 9 + size) return;
        const [command] = buffered;
        buffered = buffered.subarray(9 + size);
        if (command === 14) socket.write(framed(Buffer.concat([Buffer.from(version), Buffer.alloc(25)])));
        else if (command === 15) socket.write(framed(Buffer.from([devices, 0, 0, 0])));
        else socket.write(framed(Buffer.alloc(16, 1)));
      }
    });
  });
}
