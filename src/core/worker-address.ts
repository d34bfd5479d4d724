// Addresses of RPC workers: parsed, compared, and classified as public or private. Pure.
// The protocol has neither passwords nor encryption, so workers belong in a trusted network.

export interface WorkerAddress {
  /** A name or an IPv4 address. */
  readonly host: string;
  readonly port: number;
}

/** `HOST:PORT` taken apart; null where it is none, see {@link workerProblem}. */
export function parseWorker(text: string): WorkerAddress | null {
  return workerProblem(text) === null ? split(text) : null;
}

/** Why a text is no worker's address, in a sentence; null where it is one. */
export function workerProblem(text: string): string | null {
  const { host, port } = split(text);
  const quoted = JSON.stringify(text);
  if (port < 1 || port > 65_535) return `${quoted} is not of the form HOST:PORT, with an IPv4 address or a host's name`;
  // The system's resolver takes 127.1, 0x7f.1 and 2130706433 for addresses too: one machine would have many names.
  const isNumeric = /^(?:\d+|0x[0-9a-f]*)$/i.test(host.slice(host.lastIndexOf(".") + 1));
  if (isNumeric && !isDottedQuad(host)) return `${quoted}: ${host} is no IPv4 address`;
  if (isNumeric) return isNoMachine(host) ? `${quoted}: ${host} is no address of a single machine` : null;
  const isName = host.length <= 253 && host.split(".").every((label) => labelPattern.test(label));
  return isName ? null : `${quoted}: ${host} is no host's name`;
}

const labelPattern = /^[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/;

/** Port 0 where it has another form. */
function split(text: string): WorkerAddress {
  const [, host = "", port = "0"] = /^([^:]+):([1-9]\d{0,4})$/.exec(text.trim()) ?? [];
  return { host, port: Number(port) };
}

export function isDottedQuad(host: string): boolean {
  const numbers = host.split(".");
  return numbers.length === 4 && numbers.every((number) => /^(?:0|[1-9]\d{0,2})$/.test(number) && Number(number) < 256);
}

/** 0.0.0.0 means all addresses of a machine; from 224 on they are multicast or reserved. */
export function isNoMachine(address: string): boolean {
  const first = Number(address.split(".")[0]);
  return first === 0 || first >= 224;
}

/** By this two spellings of one worker are the same: names ignore case. */
export function foldWorker(text: string): string {
  const colon = text.lastIndexOf(":");
  return `${text.slice(0, colon).toLowerCase()}:${Number(text.slice(colon + 1))}`;
}

/** Loopback, private, link-local, and the shared range of carriers and overlay networks (100.64.0.0/10). */
export function isTrustedAddress(address: string): boolean {
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

/** Whether a worker has a public address. A name is judged once it is resolved. */
export function isPublicLiteral(text: string): boolean {
  const host = parseWorker(text)?.host;
  return host !== undefined && isDottedQuad(host) && !isTrustedAddress(host);
}
