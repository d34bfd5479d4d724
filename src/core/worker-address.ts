// The addresses of RPC workers: taken apart, compared, and judged by whether strangers could be there. Pure.
// The protocol has no password and no encryption, so a worker belongs into a network that one trusts.

export interface WorkerAddress {
  /** A name or an address, without brackets. */
  readonly host: string;
  readonly port: number;
}

/** `HOST:PORT` taken apart; null where it is none. */
export function parseWorker(text: string): WorkerAddress | null {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+)):(\d{1,5})$/.exec(text.trim());
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  return host === undefined || port < 1 || port > 65_535 ? null : { host, port };
}

/** By this two spellings of one worker are the same: names ignore case, `050052` and `50052` are one port. */
export function foldWorker(text: string): string {
  const colon = text.lastIndexOf(":");
  return `${text.slice(0, colon).toLowerCase()}:${Number(text.slice(colon + 1))}`;
}

export function isIpv6(host: string): boolean {
  return host.includes(":");
}

/** Loopback, private, link-local, unique local, and the shared range of carriers and overlay networks (100.64.0.0/10). */
export function isTrustedAddress(address: string): boolean {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return isTrustedAddress(mapped);
  if (isIpv6(address)) return /^(::1$|fe[89ab][0-9a-f]:|f[cd][0-9a-f]{2}:)/i.test(address);
  const [a = -1, b = -1] = address.split(".").map(Number);
  return (
    a === 10 ||
    a === 127 ||
    (a === 172 && b >= 16 && b < 32) ||
    (a === 192 && b === 168) ||
    (a === 169 && b === 254) ||
    (a === 100 && b >= 64 && b < 128)
  );
}

/** Whether a worker is written as an address that strangers may have. What a name means is known only once it is resolved. */
export function isPublicLiteral(text: string): boolean {
  const host = parseWorker(text)?.host;
  if (host === undefined || !(isIpv6(host) || /^\d+\.\d+\.\d+\.\d+$/.test(host))) return false;
  return !isTrustedAddress(host);
}
