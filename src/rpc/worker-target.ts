// Resolves a worker's name, and refuses addresses that may not be used. Connects to no worker.
import { lookup } from "node:dns/promises";
import { systemCode } from "../core/errors.ts";
import { isDottedQuad, isNoMachine, isTrustedAddress, parseWorker, workerProblem } from "../core/worker-address.ts";
import { type Target, within } from "./worker-wire.ts";

/** Why a worker cannot be used, whatever it responds. */
export class Unusable extends Error {
  /** CamelCase. */
  readonly reason: string;
  constructor(reason: string, message: string) {
    super(message);
    this.reason = reason;
  }
}

/**
 * A name with several addresses keeps the one in use (`held`): another order is no news.
 * Errors: {@link Unusable}, and others where the name cannot be resolved just now.
 */
export type Resolver = (
  address: string,
  options: { readonly held: Target | null; readonly allowPublic: boolean },
) => Promise<Target>;

/** A worker that was never probed delays the router's start: a slow name service must not. */
const patienceMs = 2_000;
/** How long a resolved name, or a failure, is cached. */
const freshMs = 10_000;

/** One for all workers: they share the cache of names. */
export function createResolver(addressesOf: (host: string) => Promise<readonly string[]> = systemAddresses): Resolver {
  const lookups = new Map<string, Promise<readonly string[]>>();

  function look(host: string): Promise<readonly string[]> {
    const found = addressesOf(host).catch((error: unknown) => {
      throw new Error(`${host} cannot be resolved (${systemCode(error) ?? String(error)})`, { cause: error });
    });
    const forget = (): void => void setTimeout(() => lookups.delete(host), freshMs).unref();
    found.then(forget, forget);
    lookups.set(host, found);
    return found;
  }

  /** A late result serves the next probe. */
  async function soon(host: string): Promise<readonly string[]> {
    const found = await within(lookups.get(host) ?? look(host), patienceMs);
    if (!found) throw new Error(`${host} cannot be resolved: the name service is slow`);
    return found;
  }

  return async (address, { held, allowPublic }) => {
    const parsed = parseWorker(address);
    if (!parsed) throw new Unusable("Invalid", workerProblem(address) ?? `${address} is not of the form HOST:PORT`);
    const { host, port } = parsed;
    const found = isDottedQuad(host) ? [host] : await soon(host);
    const strange = allowPublic ? undefined : found.find((candidate) => !isTrustedAddress(candidate));
    const unusable = found.find(isNoMachine) ?? strange;
    if (unusable !== undefined) throw refusal(host, unusable);
    const chosen = found.find((candidate) => candidate === held?.host) ?? found[0];
    if (chosen === undefined) throw new Error(`${host} has no IPv4 address`);
    return held?.host === chosen && held.port === port ? held : { host: chosen, port };
  };
}

async function systemAddresses(host: string): Promise<readonly string[]> {
  return (await lookup(host, { all: true, family: 4 })).map((entry) => entry.address);
}

function refusal(host: string, address: string): Unusable {
  const what = address === host ? `${host} is` : `${host} is ${address},`;
  if (isNoMachine(address)) return new Unusable("Invalid", `${what} no address of a single machine`);
  return new Unusable(
    "PublicAddress",
    `${what} a public address, and the protocol has neither password nor encryption; rpc.allowPublicWorkers permits it`,
  );
}
