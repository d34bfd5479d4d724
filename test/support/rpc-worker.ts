// Real ggml-rpc-servers of a test's own, which it can kill, stop and start again on the same port.
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import type { TestContext } from "node:test";
import { freePort } from "../../src/engines/process/free-port.ts";
import { cleanUp } from "./clean-up.ts";
import { rpcServer } from "./engine.ts";

export interface TestWorker {
  /** HOST:PORT */
  readonly address: string;
  /** Resolves once it listens. */
  start(): Promise<void>;
  /** KILL; resolves when it is gone. */
  kill(): Promise<void>;
  /** It hangs: the system still takes connections for it. */
  suspend(): void;
  resume(): void;
  /** Resolves when it has ended by itself. */
  ended(): Promise<void>;
  /** How many connections it has taken so far. */
  accepted(): number;
}

/** A worker that is not running yet; the test's end stops it. */
async function makeWorker(t: TestContext): Promise<TestWorker> {
  const port = await freePort();
  let worker: ChildProcess | null = null;
  let exited: Promise<unknown> = Promise.resolve();
  let accepted = 0;
  const kill = async (): Promise<void> => {
    worker?.kill("SIGKILL");
    await exited;
  };
  cleanUp(t, kill);
  return {
    address: `127.0.0.1:${port}`,
    start: async () => {
      const started = spawn(await rpcServer(), ["-H", "127.0.0.1", "-p", String(port), "-t", "1"], {
        stdio: ["ignore", "pipe", "pipe"],
        env: { PATH: process.env["PATH"] ?? "", TMPDIR: process.env["TMPDIR"] ?? "" },
      });
      worker = started;
      exited = once(started, "exit");
      for (const stream of [started.stdout, started.stderr])
        stream.on("data", (text: Buffer) => {
          accepted += text.toString().split("Accepted client").length - 1;
        });
      for (let listening = false; !listening; ) {
        assert.equal(started.exitCode, null, "the worker ended");
        const socket = connect(port, "127.0.0.1");
        listening = await once(socket, "connect").then(
          () => true,
          () => false,
        );
        socket.destroy();
        await new Promise(setImmediate);
      }
    },
    kill,
    suspend: () => void worker?.kill("SIGSTOP"),
    resume: () => void worker?.kill("SIGCONT"),
    ended: async () => void (await exited),
    accepted: () => accepted,
  };
}

/** A running one: resolves with its HOST:PORT. */
export async function startWorker(t: TestContext): Promise<string> {
  const worker = await makeWorker(t);
  await worker.start();
  return worker.address;
}

export async function startWorkers(t: TestContext, count: number): Promise<TestWorker[]> {
  const workers = await Promise.all(Array.from({ length: count }, () => makeWorker(t)));
  await Promise.all(workers.map((worker) => worker.start()));
  return workers;
}
