// How the loopback hub sends a file's bytes: ranges, and the troubles that a test asks for. Knows no repositories.
import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";

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
  /** From now on every copy of a file goes out with its last bit flipped; `times` copies where given. */
  corrupt(path: string, times?: number): void;
  /** From now on each connection gets so many bytes of the file per second. */
  pace(path: string, bytesPerSecond: number): void;
  /** How requests for a range of the file are answered from now on; null: as they should be. */
  lieAboutRanges(path: string, lie: RangeLie | null): void;
  /** Bytes of the file that were given to connections so far. */
  sentBytes(path: string): number;
  /** The connection is cut after `bytes` of a file. `times` default 1. */
  dropAfter(path: string, bytes: number, times?: number): void;
}

/** 200 and all of it; a Content-Range that begins elsewhere; other bytes than those asked for; 416; another total. */
export type RangeLie = "whole" | "shifted" | "wrong bytes" | "refused" | "other total";

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
  const corrupted = new Map<string, number>();
  const paces = new Map<string, number>();
  const lies = new Map<string, RangeLie>();
  const sent = new Map<string, number>();
  const drops = new Map<string, { bytes: number; times: number }>();
  const gates = new Map<string, Gate>();

  function write(response: ServerResponse, path: string, part: Buffer, written?: () => void): void {
    sent.set(path, (sent.get(path) ?? 0) + part.length);
    response.write(part, written);
  }

  async function sendPaced(response: ServerResponse, path: string, part: Buffer, rate: number): Promise<void> {
    const step = Math.max(1, Math.round((rate * paceMs) / 1000));
    for (let at = 0; at < part.length && !response.destroyed; at += step) {
      write(response, path, part.subarray(at, at + step));
      await delay(paceMs);
    }
    response.end();
  }

  async function sendPart(response: ServerResponse, path: string, part: Buffer): Promise<void> {
    const drop = drops.get(path);
    if (drop && drop.times > 0 && part.length > drop.bytes) {
      drop.times--;
      write(response, path, part.subarray(0, drop.bytes), () => response.destroy());
      return;
    }
    const gate = gates.get(path);
    const pace = paces.get(path);
    if (!gate || part.length <= gate.bytes) {
      if (pace !== undefined) await sendPaced(response, path, part, pace);
      else {
        if (part.length > 0) write(response, path, part);
        response.end();
      }
      return;
    }
    gates.delete(path);
    response.on("close", () => gate.left.fire());
    response.flushHeaders();
    if (gate.bytes > 0) {
      await new Promise<void>((resolve) => write(response, path, part.subarray(0, gate.bytes), () => resolve()));
    }
    gate.reached.fire();
    await gate.released.promise;
    if (!response.destroyed) write(response, path, part.subarray(gate.bytes));
    response.end();
  }

  return {
    troubles: {
      throttle(path, bytes) {
        const gate = { bytes, reached: signal(), left: signal(), released: signal() };
        gates.set(path, gate);
        return { reached: gate.reached.promise, left: gate.left.promise, release: () => gate.released.fire() };
      },
      corrupt(path, times = Number.POSITIVE_INFINITY) {
        corrupted.set(path, times);
      },
      pace(path, bytesPerSecond) {
        paces.set(path, bytesPerSecond);
      },
      lieAboutRanges(path, lie) {
        if (lie) lies.set(path, lie);
        else lies.delete(path);
      },
      sentBytes: (path) => sent.get(path) ?? 0,
      dropAfter(path, bytes, times = 1) {
        drops.set(path, { bytes, times });
      },
    },
    async send({ request, response, path, bytes: stored }) {
      const left = corrupted.get(path) ?? 0;
      corrupted.set(path, left - 1);
      const lie = request.headers.range === undefined ? undefined : lies.get(path);
      const bytes = left > 0 || lie === "wrong bytes" ? flipped(stored) : stored;
      const range = lie === "whole" ? null : /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? "");
      const from = range ? Number(range[1]) : 0;
      const to = Math.min(range?.[2] ? Number(range[2]) : Number.POSITIVE_INFINITY, bytes.length - 1);
      if (range && (from >= bytes.length || lie === "refused")) {
        response.writeHead(416, { "Content-Range": `bytes */${bytes.length}` }).end();
        return;
      }
      const [shift, more] = [lie === "shifted" ? 1 : 0, lie === "other total" ? 1 : 0];
      if (range) response.setHeader("Content-Range", `bytes ${from + shift}-${to + shift}/${bytes.length + more}`);
      if (lie !== "whole") response.setHeader("Accept-Ranges", "bytes");
      response.setHeader("Content-Type", "application/octet-stream");
      response.writeHead(range ? 206 : 200, { "Content-Length": to - from + 1 });
      if (request.method === "HEAD") response.end();
      else await sendPart(response, path, bytes.subarray(from, to + 1));
    },
  };
}

/** Short enough that a second's worth comes in many pieces. */
const paceMs = 10;

function flipped(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes);
  if (copy.length > 0) copy.writeUInt8((copy.at(-1) ?? 0) ^ 1, copy.length - 1);
  return copy;
}

function signal(): Signal {
  let fire: () => void = () => undefined;
  const promise = new Promise<void>((resolve) => {
    fire = resolve;
  });
  return { promise, fire: () => fire() };
}
