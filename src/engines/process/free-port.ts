// Ports of this machine: one that nobody has, and whether one is free.
import { type AddressInfo, createServer } from "node:net";

/** A loopback port that nobody has. */
export function freePort(): Promise<number> {
  return tryPort("127.0.0.1", 0);
}

/** Listens there for a moment; answers with the port. Errors: what the system says. */
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
