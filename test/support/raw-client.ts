// A client that writes bytes of its own to a socket: what no HTTP library would send, and reading only when it wants to.
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { TestContext } from "node:test";
import { cleanUp } from "./clean-up.ts";

export interface RawClient {
  readonly socket: Socket;
  send(text: string): void;
  /** What has come so far. */
  text(): string;
  /** Drops what has come so far. */
  forget(): void;
  /** Resolves with everything once the text matches; fails when the connection ends without. */
  until(pattern: RegExp): Promise<string>;
  /** Resolves with everything at the connection's end, and the ms that it took from now. */
  ended(): Promise<{ readonly text: string; readonly ms: number }>;
}

/** `url` is the gateway's; the connection goes with the test. */
export async function rawClient(t: TestContext, url: string): Promise<RawClient> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  cleanUp(t, () => void socket.destroy());
  let text = "";
  socket.setEncoding("utf8");
  socket.on("data", (chunk: string) => {
    text += chunk;
  });
  // A reset is an end like any other here.
  socket.on("error", () => undefined);
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  await Promise.race([once(socket, "connect"), closed]);
  return {
    socket,
    send: (bytes) => void socket.write(bytes),
    text: () => text,
    forget: () => {
      text = "";
    },
    until: async (pattern) => {
      while (!pattern.test(text)) {
        const more = once(socket, "data").then(() => true);
        if (!(await Promise.race([more, closed.then(() => false)])) && !pattern.test(text))
          throw new Error(`the connection ended without ${String(pattern)}: ${text.slice(0, 500)}`);
      }
      return text;
    },
    ended: async () => {
      const began = performance.now();
      await closed;
      return { text, ms: performance.now() - began };
    },
  };
}

/** A request with a JSON body, as text. */
export function rawPost(path: string, body: object, headers = ""): string {
  const text = JSON.stringify(body);
  return `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n${headers}\r\n${text}`;
}

export function rawGet(path: string, headers = ""): string {
  return `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n${headers}\r\n`;
}
