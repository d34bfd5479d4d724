// How the loopback hub sends a file's bytes: ranges, and the troubles that a test asks for. Knows no repositories.
import type { IncomingMessage, ServerResponse } from "node:http";

export interface Hold {
  /** Resolves when that many bytes are sent, and no more come. */
  readonly reached: Promise<void>;
  /** Resolves when the connection is over: the client went away, or the file was sent after the release. */
  readonly left: Promise<void>;
  release(): void;
}

export interface Troubles {
  /** The next copy of a file stops after `bytes`, until released. */
  throttle(path: string, bytes: number): Hold;
  /** From now on every copy of a file goes out with a bit flipped. */
  corrupt(path: string): void;
  /** The connection is cut after `bytes` of a file. `times` default 1. */
  dropAfter(path: string, bytes: number, times?: number): void;
}

export interface Sending {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly path: string;
  readonly bytes: Buffer;
}

interface Gate {
  readonly bytes: number;
  readonly reached: Signal;
  readonly left: Signal;
  readonly released: Signal;
}

interface Signal {
  readonly promise: Promise<void>;
  fire(): void;
}

export function createByteSender(): { readonly troubles: Troubles; send(sending: Sending): Promise<void> } {
  const corrupted = new Set<string>();
  const drops = new Map<string, { bytes: number; times: number }>();
  const gates = new Map<string, Gate>();

  async function sendPart(response: ServerResponse, path: string, part: Buffer): Promise<void> {
    const drop = drops.get(path);
    if (drop && drop.times > 0 && part.length > drop.bytes) {
      drop.times--;
      response.write(part.subarray(0, drop.bytes), () => response.destroy());
      return;
    }
    const gate = gates.get(path);
    if (!gate || part.length <= gate.bytes) {
      response.end(part);
      return;
    }
    gates.delete(path);
    response.on("close", () => gate.left.fire());
    response.flushHeaders();
    if (gate.bytes > 0) {
      await new Promise<void>((resolve) => response.write(part.subarray(0, gate.bytes), () => resolve()));
    }
    gate.reached.fire();
    await gate.released.promise;
    response.end(part.subarray(gate.bytes));
  }

  return {
    troubles: {
      throttle(path, bytes) {
        const gate = { bytes, reached: signal(), left: signal(), released: signal() };
        gates.set(path, gate);
        return { reached: gate.reached.promise, left: gate.left.promise, release: () => gate.released.fire() };
      },
      corrupt(path) {
        corrupted.add(path);
      },
      dropAfter(path, bytes, times = 1) {
        drops.set(path, { bytes, times });
      },
    },
    async send({ request, response, path, bytes: stored }) {
      const bytes = corrupted.has(path) ? flipped(stored) : stored;
      const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? "");
      const from = range ? Number(range[1]) : 0;
      const to = Math.min(range?.[2] ? Number(range[2]) : Number.POSITIVE_INFINITY, bytes.length - 1);
      if (range && from >= bytes.length) {
        response.writeHead(416, { "Content-Range": `bytes */${bytes.length}` }).end();
        return;
      }
      if (range) response.setHeader("Content-Range", `bytes ${from}-${to}/${bytes.length}`);
      response.setHeader("Accept-Ranges", "bytes");
      response.setHeader("Content-Type", "application/octet-stream");
      response.writeHead(range ? 206 : 200, { "Content-Length": to - from + 1 });
      if (request.method === "HEAD") response.end();
      else await sendPart(response, path, bytes.subarray(from, to + 1));
    },
  };
}

function flipped(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes);
  copy.writeUInt8((copy.at(-1) ?? 0) ^ 1, copy.length - 1);
  return copy;
}

function signal(): Signal {
  let fire: () => void = () => undefined;
  const promise = new Promise<void>((resolve) => {
    fire = resolve;
  });
  return { promise, fire: () => fire() };
}
