// Opens the port, or fails with the reason in plain words.
import type { AddressInfo } from "node:net";
import type { FastifyInstance } from "fastify";
import { GatewayError, reasonOf, systemCode } from "../../core/errors.ts";
import type { OwnCommand } from "../../core/own-command.ts";
import { tryPort } from "../../engines/process/free-port.ts";
import type { LicenseKeys } from "../../keys/license-keys.ts";
import { isLoopback } from "../auth/guards.ts";

/** Without license keys every client may do everything: then only this machine may connect. */
export function requireKeys(host: string, keys: Pick<LicenseKeys, "areNone">, command: OwnCommand): void {
  if (isLoopback(host) || !keys.areNone()) return;
  throw new GatewayError(
    "invalid_request",
    `--host ${host} is open to other machines, and there is no license key: ` +
      `make one with \`${command("key", "create", "NAME")}\`, or use 127.0.0.1`,
  );
}

/** Where a gateway is to listen. */
interface Place {
  readonly host: string;
  readonly port: number;
  readonly command: OwnCommand;
}

/** Errors: as {@link listen}. */
export async function requireFreePort(place: Place): Promise<void> {
  await tryPort(bareHost(place), place.port).catch((error: unknown) => Promise.reject(cannotListen(place, error)));
}

/** Answers with the address, `http://HOST:PORT`. Errors: `invalid_request` for a port that is taken or an address that is none. */
export async function listen(app: FastifyInstance, place: Place): Promise<string> {
  const host = bareHost(place);
  await app.ready();
  await app.listen({ host, port: place.port }).catch((error: unknown) => Promise.reject(cannotListen(place, error)));
  const { port } = app.server.address() as AddressInfo;
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

function bareHost({ host }: Place): string {
  return host.replace(/^\[|\]$/g, "");
}

function cannotListen({ host, port, command }: Place, error: unknown): GatewayError {
  const why =
    systemCode(error) === "EADDRINUSE"
      ? `port ${port} is taken by another program: choose another with \`${command("serve", "--port", "N")}\``
      : `cannot listen on ${host}:${port} (${reasonOf(error)})`;
  return new GatewayError("invalid_request", why, { cause: error });
}
