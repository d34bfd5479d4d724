// Free ports of this machine.
import { randomInt } from "node:crypto";
import { type AddressInfo, createServer } from "node:net";

/**
 * A free loopback port, of those that are no program's by registration and that Linux gives to no connection by itself: an engine
 * that read its model before it listened found its port taken by then.
 */
export async function freePort(): Promise<number> {
  for (let left = 20; left > 0; left--) {
    const port = await tryPort("127.0.0.1", randomInt(61_000, 65_536)).catch(() => null);
    if (port !== null) return port;
  }
  return tryPort("127.0.0.1", 0);
}

/** Listens there for a moment; resolves with the port. Errors: those of the system. */
export function tryPort(host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(port, host, () => {
      const { port: taken } = server.address() as AddressInfo;
      server.close(() => resolve(taken));
    });
  });
}
