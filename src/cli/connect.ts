// The running gateway, for commands that ask it for something: the typed client, and its errors in the command line's words.
import { Agent, fetch } from "undici";
import { GatewayClientError } from "../client/error.ts";
import { createGatewayClient, type GatewayClient } from "../client/index.ts";
import { GatewayError, isErrorCode } from "../core/errors.ts";
import type { Settings } from "../settings.ts";
import { noGateway, origin, refusedKey, requireNoGateway } from "./ask.ts";

/**
 * `without`: what is done instead where no gateway runs. Errors: `invalid_request` where no gateway answers, `unauthorized`, and
 * what the gateway says.
 */
export async function withGateway<T>(
  settings: Settings,
  work: (client: GatewayClient) => Promise<T>,
  without?: () => Promise<T>,
): Promise<T> {
  // A pull that waits for its turn says nothing for as long as that takes.
  const agent = new Agent({ headersTimeout: 0, bodyTimeout: 0 });
  const ask: unknown = (url: string, init: object) => fetch(url, { ...init, dispatcher: agent });
  const { licenseKey } = settings;
  const client = createGatewayClient({
    baseUrl: origin(settings),
    ...(licenseKey === undefined ? {} : { licenseKey }),
    fetch: ask as typeof globalThis.fetch,
  });
  try {
    return await work(client);
  } catch (error) {
    if (!(error instanceof GatewayClientError)) throw error;
    if (error.code !== "unreachable" || !without) throw inOurWords(error, settings);
    await requireNoGateway(settings);
    return await without();
  } finally {
    await agent.destroy();
  }
}

function inOurWords(error: GatewayClientError, settings: Settings): GatewayError {
  if (error.code === "unreachable") return noGateway(settings);
  if (error.status === 401) return refusedKey(settings);
  // Ollama's routes answer without a code: their message says it all.
  return new GatewayError(isErrorCode(error.code) ? error.code : "invalid_request", error.message, { cause: error });
}
