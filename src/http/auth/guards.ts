// Which hosts and origins may talk to a gateway: a page of another site must not, neither directly nor by DNS rebinding.
import { BlockList, isIP } from "node:net";

/** The Host header names this machine. A page that had its own name point here would send its name. */
export function isAllowedHost(host: string | undefined, further: readonly string[]): boolean {
  if (host === undefined) return false;
  const name = host.toLowerCase().replace(/:\d+$/, "");
  return (
    isLoopback(name) || name.endsWith(".localhost") || further.includes(name) || further.includes(host.toLowerCase())
  );
}

/** The Host header is an address, which no name can be made to point at. */
export function isAddress(host: string | undefined): boolean {
  return isIP(host?.replace(/:\d+$/, "").replace(/^\[(.*)\]$/, "$1") ?? "") !== 0;
}

export interface OriginRules {
  /** The request's own Host header. */
  readonly host: string | undefined;
  readonly allowedHosts: readonly string[];
  /** As browsers write them: `https://chat.example`. */
  readonly corsOrigins: readonly string[];
}

/** Browsers name the page's origin; other clients send none. */
export function isAllowedOrigin(origin: string | undefined, { host, allowedHosts, corsOrigins }: OriginRules): boolean {
  if (origin === undefined || corsOrigins.includes(origin)) return true;
  try {
    const page = new URL(origin);
    // Editor extensions and desktop shells: not reachable for a web site.
    if (["vscode-webview:", "vscode-file:", "app:", "tauri:", "file:"].includes(page.protocol)) return true;
    // A page that this gateway itself served, by whatever name it is known.
    return isAllowedHost(page.host, allowedHosts) || isSameHost(page, host);
  } catch {
    return false;
  }
}

/** A Host header leaves out the port where it is the scheme's own, as URL does. */
function isSameHost(page: URL, host: string | undefined): boolean {
  // What is more than a name and a port would be read as another host.
  if (!host || /[/?#@\\]/.test(host) || !["http:", "https:"].includes(page.protocol)) return false;
  return new URL(`${page.protocol}//${host}`).host === page.host;
}

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addAddress("::1", "ipv6");

/** Addresses on which only this machine can connect. IPv6 spells one in many ways, and has IPv4's too (`::ffff:127.0.0.1`). */
export function isLoopback(address: string): boolean {
  const bare = address.toLowerCase().replace(/^\[(.*)\]$/, "$1");
  if (bare === "localhost") return true;
  const version = isIP(bare);
  return version !== 0 && !bare.includes("%") && loopback.check(bare, version === 4 ? "ipv4" : "ipv6");
}
