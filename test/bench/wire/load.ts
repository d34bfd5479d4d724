// The client of the measurements: plain sockets, so that it costs little beside what is measured.
import { connect, type Socket } from "node:net";
import type { Target } from "./targets.ts";

export interface Ask {
  readonly stream: boolean;
  /** Events of a stream, and ms between two of them. */
  readonly tokens?: number;
  readonly pace?: number;
  /** Bytes of its message, or the message itself. */
  readonly bytes?: number;
  readonly text?: string;
}

export interface Answers {
  /** Of the whole run. */
  readonly ms: number;
  /** Per answer: ms to its first event and to its end. */
  readonly firsts: readonly number[];
  readonly totals: readonly number[];
  /** Events that arrived, and ms that each of a paced stream was under way. */
  readonly events: number;
  readonly delays: readonly number[];
}

/** What the client sends for each answer. */
export function requestFor(
  target: Target,
  { stream, tokens = 1, pace = 0, bytes = 2, text = "x".repeat(bytes) }: Ask,
): Buffer {
  const messages = [{ role: "user", content: text }];
  // Where Ollama's API has the limit.
  const options = { num_predict: tokens };
  const body = JSON.stringify({ model: target.model, max_tokens: tokens, stream, pace, messages, options });
  const headers = Object.entries(target.headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.from(
    `POST ${target.path} HTTP/1.1\r\nhost: 127.0.0.1:${target.port}\r\ncontent-type: application/json\r\n${headers.join("")}content-length: ${body.length}\r\n\r\n${body}`,
  );
}

/** `count` answers over `connections`, one after another on each. */
export async function ask(target: Target, what: Ask, count: number, connections: number): Promise<Answers> {
  const request = requestFor(target, what);
  const run = { firsts: [] as number[], totals: [] as number[], delays: [] as number[], events: 0 };
  const began = performance.now();
  let left = count;
  await Promise.all(
    Array.from({ length: Math.min(connections, count) }, async () => {
      let socket: Socket | null = null;
      for (; left > 0; ) {
        left--;
        socket = await once(target, socket, request, what, run);
      }
      socket?.destroy();
    }),
  );
  return { ...run, ms: performance.now() - began };
}

interface Run {
  readonly firsts: number[];
  readonly totals: number[];
  readonly delays: number[];
  events: number;
}

function once(target: Target, kept: Socket | null, request: Buffer, what: Ask, run: Run): Promise<Socket | null> {
  return new Promise((resolve, reject) => {
    const socket = kept ?? connect({ port: target.port, host: "127.0.0.1", noDelay: true });
    const began = performance.now();
    let isFirst = true;
    let isLast = false;
    let tail = "";
    let missing = Number.NaN;
    const fail = (): void => reject(new Error(`${target.name} broke off, last: ${tail.slice(-200)}`));
    const over = (): void => {
      socket.off("data", take).off("close", fail).off("error", reject);
      run.totals.push(performance.now() - began);
      if (isLast || (what.stream && target.closes)) socket.destroy();
      resolve(socket.destroyed ? null : socket);
    };
    const take = (bytes: Buffer): void => {
      // The engine's router ends a connection after a hundred answers.
      if (bytes.includes("\r\nConnection: close\r\n")) isLast = true;
      if (isFirst && (!what.stream || bytes.includes('{"'))) {
        isFirst = false;
        if (!bytes.subarray(0, 12).toString("latin1").startsWith("HTTP/1.1 200") && bytes.includes("HTTP/1.1"))
          return reject(new Error(`${target.name}: ${bytes.toString()}`));
        run.firsts.push(performance.now() - began);
      }
      if (!what.stream) {
        if (Number.isNaN(missing)) {
          tail += bytes.toString("latin1");
          const end = tail.indexOf("\r\n\r\n");
          if (end < 0) return;
          const length = /content-length: (\d+)/i.exec(tail)?.[1];
          if (length === undefined) return tail.endsWith("\r\n0\r\n\r\n") ? over() : undefined;
          missing = end + 4 + Number(length) - tail.length;
        } else missing -= bytes.length;
        if (missing === 0) over();
        return;
      }
      if (what.pace) {
        const now = performance.timeOrigin + performance.now();
        for (const [, at] of bytes.toString("latin1").matchAll(/"t":([\d.]+)/g)) run.delays.push(now - Number(at));
      }
      tail = (tail + bytes.toString("latin1", Math.max(0, bytes.length - 40))).slice(-40);
      if (!tail.endsWith("\r\n0\r\n\r\n")) return;
      if (!tail.includes("[DONE]") && !tail.includes("_duration")) return fail();
      run.events += what.tokens ?? 1;
      over();
    };
    socket.on("data", take).once("close", fail).once("error", reject);
    socket.write(request);
  });
}
