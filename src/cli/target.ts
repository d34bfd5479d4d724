// Which gateway a command calls: the one in the lock of the state folder, or one at a given address. A command that took any
// gateway on the port deleted the files of another one.
import type { GatewayClient } from "../client/index.ts";
import { GatewayError } from "../core/errors.ts";
import type { Settings } from "../settings/settings.ts";
import { type LockHolder, lockHolder } from "../state/lock.ts";

export interface Target {
  /** `http://HOST:PORT` */
  readonly origin: string;
  /** The gateway that has the state folder; null where none has. */
  readonly owner: LockHolder | null;
}

/** Null where no gateway has the state folder, and no address is given. Errors: `invalid_request` for one that is starting. */
export async function findTarget({ stateDir, host, port, isAddressGiven }: Settings): Promise<Target | null> {
  const owner = await lockHolder(stateDir);
  if (isAddressGiven) {
    const bare = host.replace(/^\[|\]$/g, "");
    return { origin: connectable(`http://${bare.includes(":") ? `[${bare}]` : bare}:${port}`), owner };
  }
  if (!owner) return null;
  if (owner.url !== null) return { origin: connectable(owner.url), owner };
  throw new GatewayError(
    "invalid_request",
    `the gateway of ${stateDir} (process ${owner.pid}) is starting: repeat this in a moment, or set its --port`,
  );
}

/** Addresses to listen on that stand for all of them; not every system takes them for its own when asked to connect. */
function connectable(url: string): string {
  return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:");
}

/**
 * Names the gateway if it is not the one of the state folder. Errors: `invalid_request` for a change there without `--force`.
 */
export async function checkOwner(
  client: GatewayClient,
  { origin, owner }: Target,
  { stateDir }: Settings,
  change: { readonly force: boolean } | undefined,
): Promise<void> {
  // Another program may answer there.
  const status: Partial<Awaited<ReturnType<GatewayClient["status"]>>> = await client.status();
  if (owner !== null && status.gateway?.id === owner.id) return;
  const document = "source" in status ? `; its document is ${status.source.path}` : "";
  const whose = `the gateway on ${origin} is not the one of the state folder ${stateDir}${document}`;
  if (change && !change.force) throw new GatewayError("invalid_request", `${whose}: use --force to change it`);
  console.error(`Note: ${whose}`);
}

export function noGateway({ stateDir, command }: Settings, target: Target | null): GatewayError {
  const start = `\`${command("serve")}\` starts one`;
  if (!target)
    return new GatewayError(
      "invalid_request",
      `no gateway runs on the state folder ${stateDir}; ${start}, --port names another`,
    );
  const { origin, owner } = target;
  const own = owner && `that of ${stateDir} (process ${owner.pid}) listens on ${owner.url ?? "no address yet"}`;
  return new GatewayError("invalid_request", `no gateway answers on ${origin}; ${own ?? start}`);
}

export function refusedKey({ licenseKey }: Settings, { origin }: Target): GatewayError {
  return new GatewayError(
    "unauthorized",
    licenseKey === undefined
      ? `the gateway on ${origin} needs a license key: set GATEWAY_LICENSE_KEY`
      : `the gateway on ${origin} does not know the license key in GATEWAY_LICENSE_KEY, or it has expired`,
  );
}
