// Resolves a worker's name, and refuses addresses that may not be used. Connects to no worker.
import { lookup } from "node:dns/promises";
import { GatewayError, systemCode } from "../core/errors.ts";
import { createLine } from "../core/line.ts";
import { isDottedQuad, isNoMachine, isTrustedAddress, parseWorker, workerProblem } from "../core/worker-address.ts";
import type { Target } from "./worker-wire.ts";

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

/** One for all workers: names are asked for one after another. */
export function createResolver(addressesOf: (host: string) => Promise<readonly string[]> = systemAddresses): Resolver {
  // The system resolves two names at a time: a roster of unknown names leaves one of these slots to others.
  const line = createLine({
    width: 1,
    depth: Number.POSITIVE_INFINITY,
    refusal: () => new GatewayError("internal", "DNS queue limit exceeded"),
    gone: () => new GatewayError("cancelled", "DNS request cancelled"),
  });
  const never = new AbortController().signal;
  const lookups = new Map<string, Promise<readonly string[]>>();

  async function inTurn(host: string): Promise<readonly string[]> {
    const over = await line.take(never);
    try {
      return await addressesOf(host);
    } catch (error) {
      throw new Error(`${host} cannot be resolved (${systemCode(error) ?? String(error)})`, { cause: error });
    } finally {
      over();
    }
  }

  /** A late result serves the next probe. */
  async function soon(host: string): Promise<readonly string[]> {
    let found = lookups.get(host);
    if (!found) {
      found = inTurn(host);
      lookups.set(host, found);
      const forget = (): void => void setTimeout(() => lookups.delete(host), freshMs).unref();
      found.then(forget, forget);
    }
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => reject(new Error(`${host} cannot be resolved: the name service is slow`)), patienceMs);
    });
    try {
      return await Promise.race([found, late]);
    } finally {
      clearTimeout(timer);
    }
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
