// The part of ggml-rpc-server's protocol that probes a worker. Seen on version 8.0 of it:
// a request is a byte, the length of what follows (64 bits, little endian) and that; an answer is length and content.
import { connect, type Socket } from "node:net";
import { systemCode } from "../core/errors.ts";
import type { WorkerDevice } from "../plan/observed.ts";

export interface WorkerFacts {
  /** Of the protocol: `8.0.0` */
  readonly version: string;
  readonly devices: readonly WorkerDevice[];
}

export type Spoken =
  | { readonly kind: "answered"; readonly facts: WorkerFacts; readonly latencyMs: number }
  | { readonly kind: "failed"; readonly reason: string; readonly message: string }
  /**
   * It accepted the connection and does not respond. The probe stays open until it does: a worker dies (SIGPIPE) of
   * answering a client that has left.
   */
  | { readonly kind: "silent"; readonly latencyMs: number; readonly over: Promise<void>; leave(): void };

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

export interface Target {
  readonly host: string;
  readonly port: number;
}

/** Opens a connection and sends nothing. Resolves with the socket, or with the reason of the failure. */
export function dial(
  { host, port }: Target,
  withinMs: number,
): Promise<{ readonly socket: Socket; readonly latencyMs: number } | { readonly failure: Failure }> {
  return new Promise((resolve) => {
    const startedAt = performance.now();
    const socket = connect({ host, port });
    const timer = setTimeout(() => fail("ETIMEDOUT"), withinMs);
    function fail(code: string): void {
      clearTimeout(timer);
      socket.destroy();
      resolve({ failure: failureOf(code, `${host}:${port}`) });
    }
    socket.on("error", (error) => fail(systemCode(error) ?? error.message));
    socket.once("connect", () => {
      clearTimeout(timer);
      resolve({ socket, latencyMs: Math.round((performance.now() - startedAt) * 10) / 10 });
    });
  });
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
  socket.on("error", (error) => (why = systemCode(error) ?? error.message));
  socket.on("close", () => onEnd(why));
}

interface Failure {
  readonly reason: string;
  readonly message: string;
}

function failureOf(code: string, where: string): Failure {
  if (code === "ECONNREFUSED") return { reason: "Refused", message: `nothing listens on ${where}` };
  if (code === "ETIMEDOUT") return { reason: "Unreachable", message: `${where} does not accept a connection` };
  return { reason: "Unreachable", message: `${where} cannot be reached (${code})` };
}

/** Hello, devices and their memory. To be called only while no model uses the worker: it serves one client at a time. */
export async function speak(target: Target, withinMs: number): Promise<Spoken> {
  const dialled = await dial(target, withinMs);
  if ("failure" in dialled) return { kind: "failed", ...dialled.failure };
  const { socket, latencyMs } = dialled;
  const where = `${target.host}:${target.port}`;
  const talk = converse(socket);
  const over = talk.then(
    () => undefined,
    () => undefined,
  );
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<"late">((resolve) => {
    timer = setTimeout(() => resolve("late"), withinMs);
  });
  try {
    const facts = await Promise.race([talk, late]);
    if (facts === "late") return { kind: "silent", latencyMs, over, leave: () => part(socket) };
    return { kind: "answered", facts, latencyMs };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return {
      kind: "failed",
      reason: "NotAWorker",
      message: `${where} does not speak as a worker of this version: ${why}`,
    };
  } finally {
    clearTimeout(timer);
  }
}

async function converse(socket: Socket): Promise<WorkerFacts> {
  const answers = listen(socket);
  const ask = (command: number, content: Buffer): Promise<Buffer> => {
    const head = Buffer.alloc(1 + lengthBytes);
    head[0] = command;
    head.writeBigUInt64LE(BigInt(content.length), 1);
    socket.write(Buffer.concat([head, content]));
    return answers.next();
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
    answers.stop();
    // Nothing is in flight, so the worker reads the end of its input and takes the next client.
    part(socket);
    return { version: [...greeting.subarray(0, 3)].join("."), devices };
  } catch (error) {
    // A peer that sends nonsense may do so for ever.
    socket.destroy();
    throw error;
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

interface Answers {
  next(): Promise<Buffer>;
  stop(): void;
}

/** Reads one answer after another, and holds no more than one of the longest. */
function listen(socket: Socket): Answers {
  let buffered = Buffer.alloc(0);
  let ended: Error | null = null;
  let wake: () => void = () => undefined;
  const end = (why: string): void => {
    ended ??= new Error(why);
    wake();
  };
  const take = (chunk: Buffer): void => {
    if (buffered.length + chunk.length > lengthBytes + maxAnswerBytes) {
      socket.destroy();
      return end("it sent unexpected data");
    }
    buffered = Buffer.concat([buffered, chunk]);
    wake();
  };
  socket.on("data", take);
  socket.on("error", (error) => end(systemCode(error) ?? error.message));
  socket.on("close", () => end("it closed the connection"));
  socket.on("end", () => end("it closed the connection"));
  return {
    stop: () => void socket.off("data", take),
    next: async () => {
      for (;;) {
        if (buffered.length >= lengthBytes) {
          const size = Number(buffered.readBigUInt64LE(0));
          if (size > maxAnswerBytes) throw new Error("its answer is too long");
          if (buffered.length >= lengthBytes + size) {
            const content = buffered.subarray(lengthBytes, lengthBytes + size);
            buffered = buffered.subarray(lengthBytes + size);
            return content;
          }
        }
        if (ended) throw ended;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
  };
}
