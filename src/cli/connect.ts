// The gateway that a command calls: the one in the lock of the state folder, or one at a given address. A command that took any
// gateway on the port deleted the files of another one.
import { Agent } from "node:http";
import { GatewayClientError } from "../client/error.ts";
import { createGatewayClient, type GatewayClient } from "../client/index.ts";
import { isErrorCode } from "../core/error-catalog.ts";
import { GatewayError } from "../core/errors.ts";
import type { Settings } from "../settings/settings.ts";
import { type LockHolder, lockHolder } from "../state/lock.ts";
import { askWith } from "./plain-fetch.ts";

interface Call<T> {
  readonly settings: Settings;
  /** The work changes something: only at the gateway of the state folder, unless it is forced. */
  readonly change?: { readonly force: boolean };
  /** What is done instead if no gateway runs; not where an address is given: that means another machine's, perhaps. */
  readonly without?: () => Promise<T>;
}

interface Target {
  /** `http://HOST:PORT`; null where no gateway has the state folder, and no address is given. */
  readonly origin: string | null;
  readonly owner: LockHolder | null;
}

/** No gateway answers, yet or any longer. */
export class GatewayAway extends GatewayError {}

/** Errors: {@link GatewayAway}, `invalid_request` where it is not the right one, `unauthorized`, and those of the gateway. */
export async function withGateway<T>(
  { settings, change, without }: Call<T>,
  work: (client: GatewayClient) => Promise<T>,
): Promise<T> {
  const target = await findTarget(settings);
  if (target.origin === null) {
    if (without) return without();
    throw noGateway(settings, target);
  }
  const agent = new Agent({ keepAlive: true });
  const ask = askWith(agent, settings.userAgent);
  const client = createGatewayClient({
    baseUrl: target.origin,
    ...(settings.licenseKey === undefined ? {} : { licenseKey: settings.licenseKey }),
    fetch: ask,
  });
  try {
    if (change || settings.isAddressGiven) await checkOwner(client, target, settings, change?.force ?? true);
    return await work(client);
  } catch (error) {
    if (!(error instanceof GatewayClientError)) throw error;
    throw asGatewayError(error, settings, target);
  } finally {
    agent.destroy();
  }
}

/** Errors: {@link GatewayAway} for a gateway that is starting. */
async function findTarget({ stateDir, host, port, isAddressGiven }: Settings): Promise<Target> {
  const owner = await lockHolder(stateDir);
  if (owner?.url === null && !isAddressGiven)
    throw new GatewayAway(
      "invalid_request",
      `the gateway of ${stateDir} (process ${owner.pid}) is starting: repeat this in a moment, or set its --port`,
    );
  const bare = host.replace(/^\[|\]$/g, "");
  const given = `http://${bare.includes(":") ? `[${bare}]` : bare}:${port}`;
  const url = isAddressGiven ? given : (owner?.url ?? null);
  // Addresses that stand for all of them: not every system accepts connections to them.
  return { origin: url?.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:") ?? null, owner };
}

/** What was printed last: `apply --wait` asks twice. */
let noted = "";

/** Names the gateway if it is not the one of the state folder. Errors: `invalid_request` for one that may not be changed. */
async function checkOwner(
  client: GatewayClient,
  { origin, owner }: Target,
  { stateDir }: Settings,
  isAllowed: boolean,
): Promise<void> {
  // Another program may answer there.
  const status: Partial<Awaited<ReturnType<GatewayClient["status"]>>> = await client.status();
  if (owner !== null && status.gateway?.id === owner.id) return;
  const document = "source" in status ? `; its document is ${status.source.path}` : "";
  const whose = `the gateway on ${origin} is not the one of the state folder ${stateDir}${document}`;
  if (!isAllowed) throw new GatewayError("invalid_request", `${whose}: use --force to change it`);
  if (whose !== noted) console.error(`Note: ${whose}`);
  noted = whose;
}

function noGateway({ stateDir, command }: Settings, { origin, owner }: Target): GatewayAway {
  const start = `\`${command("serve")}\` starts one`;
  const own = owner && `that of ${stateDir} (process ${owner.pid}) listens on ${owner.url ?? "no address yet"}`;
  return new GatewayAway(
    "invalid_request",
    origin === null
      ? `no gateway runs on the state folder ${stateDir}; ${start}, --port names another`
      : `no gateway answers on ${origin}; ${own ?? start}`,
  );
}

function asGatewayError(error: GatewayClientError, settings: Settings, target: Target): GatewayError {
  if (error.code === "unreachable") return noGateway(settings, target);
  if (error.status !== 401) {
    // Errors of Ollama's routes have no code; what these do not find are models.
    const code = error.status === 404 ? "model_not_found" : "invalid_request";
    return new GatewayError(isErrorCode(error.code) ? error.code : code, error.message, { cause: error });
  }
  const why =
    settings.licenseKey === undefined
      ? "needs a license key: set GATEWAY_LICENSE_KEY"
      : "refuses the license key in GATEWAY_LICENSE_KEY: it is unknown, revoked or expired";
  return new GatewayError("unauthorized", `the gateway on ${target.origin} ${why}`);
}
