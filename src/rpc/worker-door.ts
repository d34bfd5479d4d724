// A proxy before a ggml-rpc-server that listens on loopback.
// Why: the server itself never detects a client whose machine or network is gone, and serves it for ever; and it dies (SIGPIPE)
// of answering a client that has left. The proxy detects lost clients and drops what is written to them.
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { GatewayError, reasonOf } from "../core/errors.ts";

export interface WorkerDoor {
  close(): Promise<void>;
}

/** The system drops a client after this and ten more seconds without a packet. */
const keepAliveMs = 1_000;

/** Throws `invalid_request` where it cannot listen there. */
export async function openDoor(host: string, port: number, innerPort: number): Promise<WorkerDoor> {
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    const inner = connect({ host: "127.0.0.1", port: innerPort, allowHalfOpen: true, noDelay: true });
    for (const socket of [client, inner]) {
      sockets.add(socket);
      socket.once("close", () => sockets.delete(socket));
      // Its close event follows.
      socket.on("error", () => undefined);
    }
    client.setKeepAlive(true, keepAliveMs);
    client.pipe(inner);
    inner.pipe(client);
    client.once("close", () => {
      // To the end of its answers, else it dies of the one that is under way.
      inner.end();
      inner.resume();
    });
    inner.once("close", () => client.destroy());
    inner.once("end", () => client.end());
  });
  await once(server.listen(port, host), "listening").catch((error: unknown) => {
    throw new GatewayError("invalid_request", `${host}:${port} cannot be listened on (${reasonOf(error)})`);
  });
  return {
    close: async () => {
      const closed = once(server, "close");
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
