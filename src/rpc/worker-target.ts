// Resolves a worker's name, and refuses addresses that may not be used. Connects to no worker.
import { lookup } from "node:dns/promises";
import { reasonOf } from "../core/errors.ts";
import { isDottedQuad, isNoMachine, isTrustedAddress, parseWorker, workerProblem } from "../core/worker-address.ts";
import { within } from "../engines/process/within.ts";
import { type Target, WorkerFault } from "./worker-wire.ts";

/** A name with several addresses keeps the one in use (`held`): another order is no news. Throws {@link WorkerFault}. */
export type Resolver = (
  address: string,
  options: { readonly held: Target | null; readonly allowPublic: boolean },
) => Promise<Target>;

/** A worker that was never probed delays the router's start: a slow name service must not. */
const patienceMs = 2_000;

/** One for all workers: they share the lookups under way, since each that hangs has one of Node's four threads. */
export function createResolver(addressesOf: (host: string) => Promise<readonly string[]> = systemAddresses): Resolver {
  const lookups = new Map<string, Promise<readonly string[]>>();

  /** A late result serves the next probe. */
  async function look(host: string): Promise<readonly string[]> {
    const underWay = lookups.get(host) ?? addressesOf(host);
    lookups.set(host, underWay);
    const found = await within(underWay, patienceMs).catch((error: unknown) => {
      lookups.delete(host);
      throw new WorkerFault("Unresolvable", `${host} cannot be resolved (${reasonOf(error)})`);
    });
    if (!found) throw new WorkerFault("Unresolvable", `${host} cannot be resolved: the name service is slow`);
    lookups.delete(host);
    if (found.length === 0) throw new WorkerFault("Unresolvable", `${host} has no IPv4 address`);
    return found;
  }

  return async (address, { held, allowPublic }) => {
    const parsed = parseWorker(address);
    if (!parsed) throw new WorkerFault("Invalid", workerProblem(address) ?? address, true);
    const { host, port } = parsed;
    const found = isDottedQuad(host) ? [host] : await look(host);
    for (const candidate of found) requireUsable(host, candidate, allowPublic);
    const chosen = found.find((candidate) => candidate === held?.host) ?? found[0] ?? "";
    return held?.host === chosen && held.port === port ? held : { host: chosen, port };
  };
}

async function systemAddresses(host: string): Promise<readonly string[]> {
  return (await lookup(host, { all: true, family: 4 })).map((entry) => entry.address);
}

function requireUsable(host: string, address: string, allowPublic: boolean): void {
  const what = address === host ? `${host} is` : `${host} is ${address},`;
  if (isNoMachine(address)) throw new WorkerFault("Invalid", `${what} no address of a single machine`, true);
  if (allowPublic || isTrustedAddress(address)) return;
  const why = "a public address, and the protocol has neither password nor encryption";
  throw new WorkerFault("PublicAddress", `${what} ${why}; rpc.allowPublicWorkers permits it`, true);
}
