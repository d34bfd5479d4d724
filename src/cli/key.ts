// `key create`, `key list`, `key revoke`: the license keys in the state folder. A running gateway takes a change at its next request.
import { join } from "node:path";
import { GatewayError } from "../core/errors.ts";
import { addKey, removeKey } from "../keys/key-changes.ts";
import { keyFileName, keyLockName, listKeys } from "../keys/key-file.ts";
import { isKeyScope, isLive, type KeyEntry, keyScopes, parseExpiry } from "../keys/key-list.ts";
import type { CommandLine, Settings } from "../settings/settings.ts";
import { withLock } from "../state/lock.ts";
import { printJson, printTable } from "./text.ts";

/** The key alone goes to stdout, so that a script can take it from there. */
export async function createCommand({ settings, operands, given, json }: CommandLine): Promise<number> {
  const [name = ""] = operands;
  const now = Date.now();
  const expires = given("expires");
  const scope = given("scope") ?? "all";
  const expiresAt = expires === undefined ? undefined : parseExpiry(expires, now);
  if (expiresAt === null)
    throw new GatewayError(
      "invalid_request",
      `--expires must be a time to come such as 12h, 30d, 4w or 2027-01-01, not ${JSON.stringify(expires)}`,
    );
  if (!isKeyScope(scope))
    throw new GatewayError(
      "invalid_request",
      `--scope must be ${keyScopes.join(" or ")}, not ${JSON.stringify(scope)}`,
    );
  const { key, entry } = await change(settings, (path) => addKey(path, { name, scope, expiresAt, now }));
  if (json) return printJson({ ...shown(entry), key });
  const until = expiresAt === undefined ? "" : `, until ${expiresAt}`;
  console.error(`License key ${name}, scope ${scope}${until}. It is shown only once; the state folder has its hash.\n`);
  console.log(key);
  console.error(`
Clients send it as \`Authorization: Bearer KEY\` (their API key), \`X-License-Key\` or \`x-api-key\`; one that can send no
header has it in its address, before the path: http://HOST:PORT/k/KEY/v1
As soon as there is a key, every client needs one, on this machine too; hub search and speech stay open to all.`);
  return 0;
}

export async function listCommand({ settings, json }: CommandLine): Promise<number> {
  const keys = listKeys(pathOf(settings));
  if (json) return printJson(keys.map(shown));
  const now = Date.now();
  const rows = keys.map((entry) => [
    entry.name,
    entry.scope ?? "all",
    entry.createdAt,
    `${entry.expiresAt ?? "never"}${isLive(entry, now) ? "" : " (expired)"}`,
  ]);
  if (rows.length > 0) printTable([["NAME", "SCOPE", "CREATED", "EXPIRES"], ...rows]);
  else console.log(`No license keys: \`${settings.command("key", "create", "NAME")}\` creates one.`);
  if (settings.licenseKey !== undefined)
    console.log("GATEWAY_LICENSE_KEY is set: a gateway started with it accepts it too.");
  return 0;
}

export async function revokeCommand({ settings, operands, json }: CommandLine): Promise<number> {
  const [name = ""] = operands;
  const left = await change(settings, (path) => removeKey(path, name));
  if (json) return printJson({ revoked: name, left: left.length });
  console.log(`License key ${name} is revoked.`);
  if (left.length === 0 && settings.licenseKey === undefined)
    console.log(
      `It was the last one: the gateway now refuses every request that needs a key, also from this machine. \`${settings.command("key", "create", "NAME")}\` creates another; to use it from this machine without a key, delete ${pathOf(settings)} and restart the gateway.`,
    );
  return 0;
}

function change<T>(settings: Settings, work: (path: string) => Promise<T>): Promise<T> {
  return withLock(settings.stateDir, keyLockName, () => work(pathOf(settings)));
}

function pathOf({ stateDir }: Settings): string {
  return join(stateDir, keyFileName);
}

function shown({ name, scope = "all", createdAt, expiresAt }: KeyEntry): object {
  return { name, scope, createdAt, expiresAt: expiresAt ?? null };
}
