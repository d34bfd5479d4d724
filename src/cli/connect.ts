// The running gateway, for commands that call it: the typed client, and its errors as errors of the command line.
import { Agent, fetch } from "undici";
import { createGatewayClient, type GatewayClient } from "../client/index.ts";
import { GatewayClientError } from "../client/transport.ts";
import { isErrorCode } from "../core/error-catalog.ts";
import { GatewayError } from "../core/errors.ts";
import type { Settings } from "../settings/settings.ts";
import { checkOwner, findTarget, noGateway, refusedKey, type Target } from "./target.ts";

export interface Call<T> {
  readonly settings: Settings;
  /** The work changes something: only at the gateway of the state folder, unless it is forced. */
  readonly change?: { readonly force: boolean };
  /** What is done instead if no gateway runs. */
  readonly without?: () => Promise<T>;
}

/** Errors: `invalid_request` where no gateway answers, or not the right one, `unauthorized`, and what the gateway says. */
export async function withGateway<T>(
  { settings, change, without }: Call<T>,
  work: (client: GatewayClient) => Promise<T>,
): Promise<T> {
  const target = await findTarget(settings);
  if (!target) {
    if (without) return without();
    throw noGateway(settings, null);
  }
  // A queued pull sends nothing until its turn.
  const agent = new Agent({ headersTimeout: 0, bodyTimeout: 0 });
  const ask: unknown = (url: string, init: object) => fetch(url, { ...init, dispatcher: agent });
  const { licenseKey } = settings;
  const client = createGatewayClient({
    baseUrl: target.origin,
    ...(licenseKey === undefined ? {} : { licenseKey }),
    fetch: ask as typeof globalThis.fetch,
  });
  try {
    if (change || settings.isAddressGiven) await checkOwner(client, target, settings, change);
    return await work(client);
  } catch (error) {
    if (!(error instanceof GatewayClientError)) throw error;
    if (error.code === "unreachable" && without && target.owner === null) return await without();
    throw inOurWords(error, settings, target);
  } finally {
    await agent.destroy();
  }
}

function inOurWords(error: GatewayClientError, settings: Settings, target: Target): GatewayError {
  if (error.code === "unreachable") return noGateway(settings, target);
  if (error.status === 401) return refusedKey(settings, target);
  // Errors of Ollama's routes have no code.
  return new GatewayError(isErrorCode(error.code) ? error.code : "invalid_request", error.message, { cause: error });
}
