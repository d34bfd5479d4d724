// Connections to the models' processes: pools, one of its own for a large prompt, and the question whether a silent process lives.
import type { Socket } from "node:net";
import { buildConnector, Client, Pool, type PoolOptions } from "../../undici.ts";
import type { Instance } from "./instances.ts";

/** Both ends are on this machine: nothing is lost between them that probes would find. A stream has a connection of its own. */
export const connect = { timeout: 5_000, keepAlive: false };

export interface Pools {
  of(instance: Instance): Pool;
  destroy(): Promise<void>;
}

/** undici's own Agent drops a pool with its last connection, so a stream at a time made a pool each. */
export function createPools(options: PoolOptions): Pools {
  const pools = new Map<string, Pool>();

  function open(origin: string): Pool {
    // Processes come and go, each with a port of its own.
    for (const [other, { stats, destroyed }] of pools)
      if (destroyed || stats.connected + stats.pending + stats.running === 0) void closeNow(other);
    const pool = new Pool(origin, options);
    pools.set(origin, pool);
    return pool;
  }

  async function closeNow(origin: string): Promise<void> {
    const pool = pools.get(origin);
    pools.delete(origin);
    await pool?.destroy();
  }

  return {
    of: ({ origin }) => pools.get(origin) ?? open(origin),
    destroy: async () => void (await Promise.all([...pools.keys()].map(closeNow))),
  };
}

export interface OwnConnection {
  readonly client: Client;
  leave(): void;
}

/** A connection of which we can close our half: the engine takes that for a client that left, and closes its own when it has finished. */
export function openOwn(origin: string): OwnConnection {
  let socket: Socket | null = null;
  const open = buildConnector(connect);
  const client = new Client(origin, {
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: (options, done) =>
      open(options, (...made) => {
        [, socket] = made;
        done(...made);
      }),
  });
  return { client, leave: () => void (socket ? socket.end() : client.destroy()) };
}

/** Asks a process for its health once for all requests that wait for it: a thousand requests would else be a thousand questions. */
export function sharedHealth(pools: Pools, withinMs: number): (instance: Instance) => Promise<boolean> {
  const asked = new Map<string, Promise<boolean>>();
  return (instance) => {
    const { origin } = instance;
    const known = asked.get(origin);
    if (known) return known;
    const answer = isHealthyNow(pools.of(instance), instance, withinMs);
    asked.set(origin, answer);
    void answer.then(() => setTimeout(() => asked.delete(origin), withinMs / 2).unref());
    return answer;
  };
}

async function isHealthyNow(pool: Pool, { key }: Instance, withinMs: number): Promise<boolean> {
  try {
    const answer = await pool.request({
      path: "/health",
      method: "GET",
      headers: { authorization: `Bearer ${key}` },
      reset: true,
      signal: AbortSignal.timeout(withinMs),
    });
    await answer.body.dump();
    return answer.statusCode === 200;
  } catch {
    return false;
  }
}
