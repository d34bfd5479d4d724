// Free ports of this machine.
import { type AddressInfo, createServer } from "node:net";

/** A free loopback port. */
export function freePort(): Promise<number> {
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
