// The part of ggml-rpc-server's protocol that probes a worker. Seen on version 8.0 of it:
// a request is a byte, the length of what follows (64 bits, little endian) and that; an answer is length and content.
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { reasonOf } from "../core/errors.ts";
import { within } from "../engines/process/within.ts";
import type { WorkerDevice } from "../plan/observed.ts";

export interface WorkerFacts {
  /** Of the protocol: `8.0.0` */
  readonly version: string;
  readonly devices: readonly WorkerDevice[];
}

/** `silent`: it took the connection and does not answer, as it hangs or serves another client. */
export type Spoken = { readonly latencyMs: number } & (
  | { readonly kind: "answered"; readonly facts: WorkerFacts }
  /** The probe stays open until it is over: a worker dies (SIGPIPE) of answering a client that has left. */
  | { readonly kind: "silent"; readonly over: Promise<void>; leave(): void }
);

/** Why a worker cannot be used. */
export class WorkerFault extends Error {
  /** CamelCase. */
  readonly reason: string;
  /** No second probe is needed. */
  readonly certain: boolean;
  constructor(reason: string, message: string, certain = false) {
    super(message);
    this.reason = reason;
    this.certain = certain;
  }
}

export interface Target {
  readonly host: string;
  readonly port: number;
}

const deviceMemory = 11;
const hello = 14;
const deviceCount = 15;
/** Capabilities of a client; none are needed here. */
const capabilityBytes = 24;
/** More devices than any machine has: what claims more is no worker. */
const maxDevices = 64;
/** No answer here is longer. */
const maxAnswerBytes = 4096;
const lengthBytes = 8;
/** What a peer gets to end its side of the connection in. */
const partingMs = 1_000;
/** The system closes a silent connection after this and ten more seconds without a packet. */
const keepAliveMs = 1_000;

/** Opens a connection and sends nothing. Throws {@link WorkerFault}. */
export async function dial({ host, port }: Target, withinMs: number): Promise<{ socket: Socket; latencyMs: number }> {
  const startedAt = performance.now();
  const socket = connect({ host, port });
  // An error ends the connection; its reader gets it.
  socket.on("error", () => undefined);
  try {
    await once(socket, "connect", { signal: AbortSignal.timeout(withinMs) });
    return { socket, latencyMs: Math.round((performance.now() - startedAt) * 10) / 10 };
  } catch (error) {
    socket.destroy();
    const code = reasonOf(error);
    if (code === "ECONNREFUSED") throw new WorkerFault("Refused", `nothing listens on ${host}:${port}`);
    const isLate = code === "ABORT_ERR" || code === "ETIMEDOUT";
    const how = isLate ? "does not accept a connection" : `cannot be reached (${code})`;
    throw new WorkerFault("Unreachable", `${host}:${port} ${how}`);
  }
}

/** Keeps a silent connection, and reports its end. */
export function holdSilent(socket: Socket, onEnd: (why: string) => void): void {
  let why = "it closed the connection";
  socket.setKeepAlive(true, keepAliveMs);
  socket.unref();
  // A worker sends nothing unasked.
  socket.on("data", () => {
    why = "it sent unexpected data";
    socket.destroy();
  });
  socket.on("error", (error) => (why = reasonOf(error)));
  socket.on("close", () => onEnd(why));
}

/** To be called only while no model uses the worker: it serves one client at a time. Throws {@link WorkerFault}. */
export async function speak(target: Target, withinMs: number): Promise<Spoken> {
  const { socket, latencyMs } = await dial(target, withinMs);
  const talk = converse(socket);
  const ignored = (): void => undefined;
  try {
    const facts = await within(talk, withinMs);
    if (facts) return { kind: "answered", facts, latencyMs };
    return { kind: "silent", latencyMs, over: talk.then(ignored, ignored), leave: () => part(socket) };
  } catch (error) {
    const message = `${target.host}:${target.port} does not speak as a worker of this version: ${reasonOf(error)}`;
    throw new WorkerFault("NotAWorker", message);
  }
}

async function converse(socket: Socket): Promise<WorkerFacts> {
  const answers = answersOf(socket);
  const ask = async (command: number, content: Buffer): Promise<Buffer> => {
    const head = Buffer.alloc(1 + lengthBytes);
    head[0] = command;
    head.writeBigUInt64LE(BigInt(content.length), 1);
    socket.write(Buffer.concat([head, content]));
    const { value } = await answers.next();
    if (!value) throw new Error("it closed the connection");
    return value;
  };
  try {
    const greeting = await ask(hello, Buffer.alloc(capabilityBytes));
    if (greeting.length < 3) throw new Error("its hello is too short");
    const count = await ask(deviceCount, Buffer.alloc(0));
    const devices: WorkerDevice[] = [];
    const devicesThere = count.length === 4 ? count.readUInt32LE(0) : maxDevices + 1;
    if (devicesThere > maxDevices) throw new Error("its number of devices is invalid");
    for (let index = 0; index < devicesThere; index++) {
      const which = Buffer.alloc(4);
      which.writeUInt32LE(index);
      const memory = await ask(deviceMemory, which);
      if (memory.length !== 16) throw new Error("its memory report is invalid");
      devices.push({
        freeBytes: Number(memory.readBigUInt64LE(0)),
        totalBytes: Number(memory.readBigUInt64LE(8)),
      });
    }
    await answers.return(undefined);
    // Nothing is in flight, so the worker reads the end of its input and takes the next client.
    part(socket);
    return { version: [...greeting.subarray(0, 3)].join("."), devices };
  } catch (error) {
    // A peer that sends nonsense may do so for ever.
    socket.destroy();
    throw error;
  }
}

/** One answer after another. */
async function* answersOf(socket: Socket): AsyncGenerator<Buffer, undefined> {
  let held = Buffer.alloc(0);
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    held = Buffer.concat([held, chunk as Buffer]);
    while (held.length >= lengthBytes) {
      const size = Number(held.readBigUInt64LE(0));
      if (size > maxAnswerBytes) throw new Error("its answer is too long");
      if (held.length < lengthBytes + size) break;
      yield held.subarray(lengthBytes, lengthBytes + size);
      held = held.subarray(lengthBytes + size);
    }
  }
}

/** Ends our side; the other side gets a moment to end its own. */
function part(socket: Socket): void {
  const timer = setTimeout(() => socket.destroy(), partingMs);
  timer.unref();
  socket.once("close", () => clearTimeout(timer));
  socket.once("end", () => socket.destroy());
  socket.on("data", () => socket.destroy());
  socket.end();
  socket.resume();
}
