// Opens the port, and says in plain words why it cannot.
import type { AddressInfo } from "node:net";
import type { FastifyInstance } from "fastify";
import { GatewayError, systemCode } from "../core/errors.ts";
import type { OwnCommand } from "../core/own-command.ts";
import { isLoopback } from "./guards.ts";
import type { LicenseKeys } from "./keys/license-keys.ts";

/** Without license keys everybody who can connect may do everything: then only this machine may connect. */
export function requireKeys(host: string, keys: Pick<LicenseKeys, "areNone">, command: OwnCommand): void {
  if (isLoopback(host) || !keys.areNone()) return;
  throw new GatewayError(
    "invalid_request",
    `--host ${host} is open to other machines, and there is no license key to keep strangers out: ` +
      `make one with \`${command("key", "create", "NAME")}\`, or use 127.0.0.1`,
  );
}

/** Answers with the address, `http://HOST:PORT`. Errors: `invalid_request` for a port that is taken or an address that is none. */
export async function listen(app: FastifyInstance, host: string, port: number): Promise<string> {
  const bare = host.replace(/^\[|\]$/g, "");
  try {
    await app.ready();
  } catch (error) {
    // Settings are checked before; should that have missed something, it is theirs all the same.
    if (systemCode(error) !== "FST_ERR_DUPLICATED_ROUTE") throw error;
    const why = error instanceof Error ? error.message : String(error);
    throw new GatewayError("invalid_request", `--native-prefix and --compat-prefix do not go together: ${why}`, {
      cause: error,
    });
  }
  try {
    await app.listen({ host: bare, port });
  } catch (error) {
    const why =
      systemCode(error) === "EADDRINUSE"
        ? `port ${port} is taken by another program: choose one with --port`
        : `cannot listen on ${host}:${port} (${systemCode(error) ?? String(error)})`;
    throw new GatewayError("invalid_request", why, { cause: error });
  }
  const address = app.server.address() as AddressInfo;
  return `http://${bare.includes(":") ? `[${bare}]` : bare}:${address.port}`;
}
