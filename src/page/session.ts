// Where the gateway is, and the license key, which is kept for this tab alone.
import { createGatewayClient, type GatewayClient } from "../client/index.ts";

/** The page's script lies in `BASE/ui/`, also below the path of a proxy. */
export const baseUrl = new URL("..", import.meta.url).href.replace(/\/$/, "");

const keyName = "model-gateway-license-key";

export function storedKey(): string | null {
  return sessionStorage.getItem(keyName);
}

export function storeKey(key: string): void {
  sessionStorage.setItem(keyName, key);
}

export function clientWith(licenseKey: string | null): GatewayClient {
  return createGatewayClient({
    baseUrl,
    ...(licenseKey === null ? {} : { licenseKey }),
    fetch: (...args) => fetch(...args),
  });
}
