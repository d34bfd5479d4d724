// Whether an address is this gateway's own, as far as its text says.
import { isLoopback } from "../http/auth/guards.ts";

/** `name`: the host's. A pod of a StatefulSet has it in front of its Service's: NAME-0.SERVICE. */
export function isOwnAddress(address: string, own: { readonly name: string; readonly port: number }): boolean {
  const { hostname: host, port } = new URL(address);
  const name = own.name.toLowerCase();
  return Number(port || 80) === own.port && (isLoopback(host) || host === name || host.startsWith(`${name}.`));
}
