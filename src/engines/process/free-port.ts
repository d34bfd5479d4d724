// Free ports of this machine.
import { randomInt } from "node:crypto";
import { readFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";

/**
 * A free loopback port. An engine reads its model before it listens, and found its port taken by then: on Linux it is one of those
 * that are registered for no program, and that the system by default gives to no connection.
 */
export async function freePort(): Promise<number> {
  const used = await portsInUse();
  for (let left = used.size === 0 ? 0 : 50; left > 0; left--) {
    const port = randomInt(61_000, 65_536);
    const isFree = !used.has(port) && (await tryPort("127.0.0.1", port).catch(() => null)) !== null;
    if (isFree) return port;
  }
  return tryPort("127.0.0.1", 0);
}

/**
 * Ports of all TCP sockets, on Linux. A connection that a server has closed keeps its port for a minute: Node can listen there
 * all the same, but whisper-server ends at once ("couldn't bind to server socket").
 */
export async function portsInUse(): Promise<ReadonlySet<number>> {
  const tables = ["/proc/net/tcp", "/proc/net/tcp6"].map((path) => readFile(path, "latin1").catch(() => ""));
  // "   1: 0100007F:EF32 …": the number of the line, then address and port of this end.
  const lines = (await Promise.all(tables)).join("\n").matchAll(/^ *\d+: [\dA-F]+:([\dA-F]{4})/gm);
  return new Set([...lines].map(([, port = ""]) => Number.parseInt(port, 16)));
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
