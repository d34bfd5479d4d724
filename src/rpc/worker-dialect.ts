// Whether the engine takes a worker that greets like this one. The engine is asked, and not a table of versions: it is given
// a listener of ours that repeats the worker's hello, so the worker itself is left out of it.
import { stat } from "node:fs/promises";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { engineEnvironment } from "../engines/process/engine-environment.ts";
import { markerName, markerValue } from "../engines/process/leftovers.ts";
import { startProcess } from "../engines/process/managed-process.ts";

export interface WorkerDialect {
  /**
   * False: it ends at such a hello, and so would every load. Null: it cannot be asked (there is no engine, or it knows no
   * workers).
   */
  takes(greeting: Uint8Array): Promise<boolean | null>;
}

/** Seen: 30 ms to take one, 200 ms to refuse it. */
const askMs = 10_000;
/** A worker that greets otherwise each time has the engine asked no more often than this holds. */
const maxKnown = 64;
const hello = 14;
/** A command and the length of what follows. */
const headBytes = 9;
const maxRequestBytes = 4096;

export function createWorkerDialect(options: {
  /** The engine's path; null while there is none. */
  readonly binary: () => string | null;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly stateDir: string;
}): WorkerDialect {
  const known = new Map<string, Promise<boolean | null>>();

  return {
    takes: async (greeting) => {
      const path = options.binary();
      const build = path === null ? null : await stat(path).catch(() => null);
      if (path === null || build === null) return null;
      const key = `${path} ${build.ino} ${build.mtimeMs} ${Buffer.from(greeting).toString("base64")}`;
      const earlier = known.get(key);
      if (earlier) return earlier;
      const [oldest] = known.keys();
      if (known.size >= maxKnown && oldest !== undefined) known.delete(oldest);
      const answer = ask(path, greeting, options).catch(() => null);
      known.set(key, answer);
      // What could not be found out is asked again.
      if ((await answer) === null) known.delete(key);
      return answer;
    },
  };
}

/** The engine lists the devices of a worker; one that takes the hello has a second question. */
async function ask(
  path: string,
  greeting: Uint8Array,
  { environment, stateDir }: Parameters<typeof createWorkerDialect>[0],
): Promise<boolean | null> {
  const sockets = new Set<Socket>();
  let greeted = false;
  let goesOn = false;
  let tell: () => void = () => undefined;
  const second = new Promise<void>((resolve) => {
    tell = resolve;
  });
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.once("close", () => sockets.delete(socket));
    eachCommand(socket, (command) => {
      if (command === hello) {
        greeted = true;
        socket.write(frame(greeting));
      } else {
        goesOn = true;
        tell();
      }
    });
  });
  try {
    const port = await listening(server);
    const engine = await startProcess({
      path,
      args: ["--rpc", `127.0.0.1:${port}`, "--list-devices"],
      environment: engineEnvironment(environment, { GGML_NO_BACKTRACE: "1", [markerName]: markerValue(stateDir) }),
      workingDir: stateDir,
    });
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, askMs);
    });
    await Promise.race([second, engine.exited, late]);
    clearTimeout(timer);
    const isOver = engine.hasExited();
    await engine.stop(0);
    if (goesOn) return true;
    // One that neither goes on nor ends has not made up its mind.
    return greeted && isOver ? false : null;
  } finally {
    for (const socket of sockets) socket.destroy();
    server.close();
  }
}

function eachCommand(socket: Socket, onCommand: (command: number) => void): void {
  let buffered = Buffer.alloc(0);
  socket.on("data", (chunk: Buffer) => {
    buffered = Buffer.concat([buffered, chunk]);
    while (buffered.length >= headBytes) {
      const size = Number(buffered.readBigUInt64LE(1));
      if (size > maxRequestBytes) return void socket.destroy();
      if (buffered.length < headBytes + size) return;
      const [command = 0] = buffered;
      buffered = buffered.subarray(headBytes + size);
      onCommand(command);
    }
  });
}

function frame(content: Uint8Array): Buffer {
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(content.length));
  return Buffer.concat([size, content]);
}

function listening(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port));
  });
}
