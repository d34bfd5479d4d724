// The few words of ggml-rpc-server's protocol that tell how a worker is. Seen on version 8.0 of it:
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
   * It took the connection and does not answer. The question stays open until it does: a worker dies (SIGPIPE) of
   * answering somebody who has left.
   */
  | { readonly kind: "silent"; readonly latencyMs: number; readonly over: Promise<void>; leave(): void };

const deviceMemory = 11;
const hello = 14;
const deviceCount = 15;
/** What a client can do; nothing of it is needed here. */
const capabilityBytes = 24;
/** More devices than any machine has: what claims more is no worker. */
const maxDevices = 64;
/** No answer here is longer. */
const maxAnswerBytes = 4096;

export interface Target {
  readonly host: string;
  readonly port: number;
}

/** Opens a connection and says nothing. Resolves with the socket, or with why there is none. */
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

interface Failure {
  readonly reason: string;
  readonly message: string;
}

function failureOf(code: string, where: string): Failure {
  if (code === "ECONNREFUSED") return { reason: "Refused", message: `nothing listens on ${where}` };
  if (code === "ETIMEDOUT") return { reason: "Unreachable", message: `${where} does not take a connection` };
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
    if (facts === "late") return { kind: "silent", latencyMs, over, leave: () => void socket.end() };
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
  const read = reader(socket);
  const ask = (command: number, content: Buffer): Promise<Buffer> => {
    const head = Buffer.alloc(9);
    head[0] = command;
    head.writeBigUInt64LE(BigInt(content.length), 1);
    socket.write(Buffer.concat([head, content]));
    return read();
  };
  try {
    const greeting = await ask(hello, Buffer.alloc(capabilityBytes));
    if (greeting.length < 3) throw new Error("its hello is too short");
    const count = await ask(deviceCount, Buffer.alloc(0));
    const devices: WorkerDevice[] = [];
    const devicesThere = count.length === 4 ? count.readUInt32LE(0) : maxDevices + 1;
    if (devicesThere > maxDevices) throw new Error("its number of devices makes no sense");
    for (let index = 0; index < devicesThere; index++) {
      const which = Buffer.alloc(4);
      which.writeUInt32LE(index);
      const memory = await ask(deviceMemory, which);
      if (memory.length !== 16) throw new Error("what it says of its memory makes no sense");
      devices.push({
        freeBytes: Number(memory.readBigUInt64LE(0)),
        totalBytes: Number(memory.readBigUInt64LE(8)),
      });
    }
    return { version: [...greeting.subarray(0, 3)].join("."), devices };
  } finally {
    // Nothing is on its way any more, so the worker meets the end of its input and takes the next client.
    socket.end();
    socket.once("end", () => socket.destroy());
    socket.resume();
  }
}

/** Reads one answer after another. */
function reader(socket: Socket): () => Promise<Buffer> {
  let buffered = Buffer.alloc(0);
  let ended: Error | null = null;
  let wake: () => void = () => undefined;
  socket.on("data", (chunk: Buffer) => {
    buffered = Buffer.concat([buffered, chunk]);
    wake();
  });
  const end = (why: string): void => {
    ended ??= new Error(why);
    wake();
  };
  socket.on("error", (error) => end(systemCode(error) ?? error.message));
  socket.on("close", () => end("it closed the connection"));
  socket.on("end", () => end("it closed the connection"));
  return async () => {
    for (;;) {
      if (buffered.length >= 8) {
        const size = Number(buffered.readBigUInt64LE(0));
        if (size > maxAnswerBytes) throw new Error("its answer is too long");
        if (buffered.length >= 8 + size) {
          const content = buffered.subarray(8, 8 + size);
          buffered = buffered.subarray(8 + size);
          return content;
        }
      }
      if (ended) throw ended;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  };
}
