// A real ggml-rpc-server of the test's own.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import type { TestContext } from "node:test";
import { freePort } from "../../src/engines/free-port.ts";
import { cleanUp } from "./clean-up.ts";
import { rpcServer } from "./engine.ts";

/** Resolves with its HOST:PORT once it listens; the test's end stops it. */
export async function startWorker(t: TestContext): Promise<string> {
  const port = await freePort();
  const worker = spawn(await rpcServer(), ["-H", "127.0.0.1", "-p", String(port)], {
    stdio: ["ignore", "ignore", "ignore"],
    env: { PATH: process.env["PATH"] ?? "", TMPDIR: process.env["TMPDIR"] ?? "" },
  });
  const exited = once(worker, "exit");
  cleanUp(t, async () => {
    worker.kill("SIGKILL");
    await exited;
  });
  for (let listening = false; !listening; ) {
    assert.equal(worker.exitCode, null, "the worker ended");
    const socket = connect(port, "127.0.0.1");
    listening = await once(socket, "connect").then(
      () => true,
      () => false,
    );
    socket.destroy();
    await new Promise(setImmediate);
  }
  return `127.0.0.1:${port}`;
}
