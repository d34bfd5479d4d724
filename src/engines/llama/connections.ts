// Connections to the models' processes, on this machine: one request at a time on each, and none waits for one.
// Its own HTTP, and not undici's: a quarter of a chat's processor time, and half of a fast stream's (docs/benchmarks).
import { connect, type Socket } from "node:net";
import { createBag } from "../../core/bag.ts";
import { stoppingError } from "../../core/errors.ts";
import type { Instance } from "./instances.ts";
import { ResponseReader, type ResponseSink } from "./response-reader.ts";

/** Exactly one of `onEnd` and `onFailed` comes last; neither after `destroy`. */
export interface AnswerHandler {
  onHead(status: number, contentType: string): void;
  /** `bytes`: valid until it returns. False: no more until `resume`. */
  onBody(bytes: Buffer): boolean;
  onEnd(): void;
  /** `error`: null: the process has closed the connection. */
  onFailed(error: Error | null): void;
}

export interface InstanceRequest {
  readonly path: string;
  /** JSON, in pieces; null asks with GET. */
  readonly body: readonly Uint8Array[] | null;
  /** The connection is used for nothing after it. */
  readonly isLast: boolean;
}

export interface Connections {
  /** `isFresh`: not on one that was used before. */
  send(instance: Instance, request: InstanceRequest, handler: AnswerHandler, isFresh?: boolean): Connection;
  /** Ends them all; answers under way fail. */
  destroy(): void;
}

/** What becomes of a connection after an answer: it takes another request, or none. */
export interface ConnectionListener {
  onIdle(): void;
  onSpent(): void;
  onClosed(): void;
}

/** Of one process. */
interface Host {
  readonly idle: Connection[];
  /** Connections, the idle ones too. */
  open: number;
}

export function createConnections(): Connections {
  const hosts = new Map<string, Host>();
  const all = createBag<Connection>();

  function open(origin: string): Connection {
    const host = hosts.get(origin) ?? { idle: [], open: 0 };
    hosts.set(origin, host);
    host.open++;
    const connection: Connection = new Connection(origin, {
      onIdle: () => host.idle.push(connection),
      // The next stream is a step of ours and one of the process sooner there: 4.2 ms to its first byte in place of 4.4.
      onSpent: () => {
        if (host.idle.length === 0) host.idle.push(open(origin));
      },
      onClosed: () => {
        all.delete(connection);
        const at = host.idle.indexOf(connection);
        if (at >= 0) host.idle.splice(at, 1);
        // Processes come and go, each with a port of its own.
        if (--host.open === 0) hosts.delete(origin);
      },
    });
    all.add(connection);
    return connection;
  }

  function unused(origin: string): Connection | undefined {
    const idle = hosts.get(origin)?.idle ?? [];
    let found = idle.pop();
    // The process has closed it, and we have not heard of it yet.
    while (found && !found.isUsable()) found = idle.pop();
    return found;
  }

  return {
    send: (instance, request, handler, isFresh = false) => {
      const connection = (isFresh ? undefined : unused(instance.origin)) ?? open(instance.origin);
      connection.send(instance, request, handler);
      return connection;
    },
    destroy: () => {
      for (const connection of all.members()) connection.end(stoppingError());
    },
  };
}

const readBytes = 64 * 1024;
/** Of all connections: what was read is handed on before the next read. Windows reads ahead, so there each has its own. */
const readInto = Buffer.allocUnsafeSlow(readBytes);

/** Bytes up to which head and body are sent as one: a copy costs less than another system call. */
const smallBody = 1 << 18;

export class Connection implements ResponseSink {
  place = -1;
  readonly origin: string;
  readonly #socket: Socket;
  readonly #listener: ConnectionListener;
  #handler: AnswerHandler | null = null;
  #reader: ResponseReader | null = null;
  #isLast = false;
  #isPaused = false;
  #error: Error | null = null;

  constructor(origin: string, listener: ConnectionListener) {
    this.origin = origin;
    this.#listener = listener;
    const { hostname: host, port } = new URL(origin);
    const buffer = process.platform === "win32" ? Buffer.allocUnsafeSlow(readBytes) : readInto;
    this.#socket = connect({
      host,
      port: Number(port),
      noDelay: true,
      onread: { buffer, callback: (length) => this.#take(buffer.subarray(0, length)) },
    });
    this.#socket.on("error", (error) => {
      this.#error = error;
    });
    this.#socket.on("close", () => {
      listener.onClosed();
      this.#close();
    });
  }

  send({ key }: Pick<Instance, "key">, { path, body, isLast }: InstanceRequest, handler: AnswerHandler): void {
    this.#handler = handler;
    this.#reader = new ResponseReader(this);
    this.#isLast = isLast;
    const length = body === null ? 0 : lengthOf(body);
    const content = body === null ? "" : `content-type: application/json\r\ncontent-length: ${length}\r\n`;
    const head = `${body === null ? "GET" : "POST"} ${path} HTTP/1.1\r\nhost: ${this.origin.slice("http://".length)}\r\nconnection: ${isLast ? "close" : "keep-alive"}\r\nauthorization: Bearer ${key}\r\n${content}\r\n`;
    if (length <= smallBody) return void this.#socket.write(joined(head, body ?? [], length));
    this.#socket.cork();
    this.#socket.write(head, "latin1");
    for (const piece of body ?? []) this.#socket.write(piece);
    this.#socket.uncork();
  }

  isUsable(): boolean {
    return this.#socket.writable;
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#socket.resume();
  }

  /** Nothing more comes of its answer; the process stops computing it. */
  destroy(): void {
    this.#handler = null;
    this.#socket.destroy();
  }

  /** Closes our half: the process takes that for a client that left, and closes its own when it has finished. */
  leave(): void {
    this.#isLast = true;
    this.#socket.end();
  }

  /** Its answer fails. */
  end(error: Error): void {
    this.#socket.destroy(error);
  }

  onHead(status: number, contentType: string): void {
    this.#handler?.onHead(status, contentType);
  }

  onBody(bytes: Buffer): void {
    if (this.#handler?.onBody(bytes) === false) this.#isPaused = true;
  }

  /** False: read no more. */
  #take(bytes: Buffer): boolean {
    const reader = this.#reader;
    let isWhole = false;
    try {
      if (!reader) throw new Error("bytes came that nothing was asked for");
      isWhole = reader.read(bytes);
    } catch (error) {
      this.#socket.destroy(error as Error);
    }
    if (reader && isWhole) this.#finish(reader);
    return !this.#isPaused;
  }

  #finish(reader: ResponseReader): void {
    const handler = this.#handler;
    this.#handler = null;
    this.#reader = null;
    this.#isPaused = false;
    if (this.#isLast || !reader.isKept()) {
      this.#socket.destroy();
      this.#listener.onSpent();
    } else this.#listener.onIdle();
    handler?.onEnd();
  }

  #close(): void {
    const handler = this.#handler;
    this.#handler = null;
    if (this.#error === null && this.#reader?.ended()) handler?.onEnd();
    else handler?.onFailed(this.#error);
  }
}

function joined(head: string, body: readonly Uint8Array[], length: number): Buffer {
  const whole = Buffer.allocUnsafe(head.length + length);
  let at = whole.write(head, "latin1");
  for (const piece of body) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

export function lengthOf(body: readonly Uint8Array[]): number {
  return body.reduce((sum, { length }) => sum + length, 0);
}
