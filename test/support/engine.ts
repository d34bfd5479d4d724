// The real engines for tests. A missing engine is a failure and not a skip: what is not run is not known to work.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import type { TestContext } from "node:test";
import { type EngineBinary, locateEngine } from "../../src/engines/locate.ts";
import { cleanUp } from "./clean-up.ts";

/** Absolute path of the llama-server to test with; MODEL_GATEWAY_TEST_ENGINES names another engines folder. */
export function llamaServer(): Promise<string> {
  return engine("llama-server");
}

export function rpcServer(): Promise<string> {
  return engine("ggml-rpc-server");
}

async function engine(binary: EngineBinary): Promise<string> {
  const enginesDir = process.env["MODEL_GATEWAY_TEST_ENGINES"] ?? join(projectRoot(), "state", "engines");
  const found = await locateEngine(binary, {
    explicit: undefined,
    pathVariable: process.env["PATH"] ?? "",
    enginesDir,
  });
  if (!found) {
    throw new Error(`no ${binary} in PATH or ${enginesDir}: run \`model-gateway engine install\` first`);
  }
  return found.path;
}

export interface RunningServer {
  /** `http://127.0.0.1:PORT` */
  readonly url: string;
  /** What it has written so far. */
  output(): string;
}

/**
 * Starts a llama-server of the test's own on a free loopback port and waits until it listens; the test's end stops it.
 * `environment` is all it gets beside PATH.
 */
export async function startLlamaServer(
  t: TestContext,
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<RunningServer> {
  const server = spawn(await llamaServer(), ["--host", "127.0.0.1", "--port", "0", "--offline", ...args], {
    env: { PATH: process.env["PATH"] ?? "", ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const exited = once(server, "exit");
  cleanUp(t, async () => {
    if (server.exitCode !== null || server.signalCode !== null) return;
    server.kill("SIGTERM");
    const kill = setTimeout(() => server.kill("SIGKILL"), 5000);
    await exited;
    clearTimeout(kill);
  });

  let output = "";
  const url = await new Promise<string>((resolve, reject) => {
    function fail(why: string): void {
      reject(new Error(`llama-server ${why}:\n${output.slice(-4000)}`));
    }
    const deadline = setTimeout(() => fail("does not listen"), 60_000);
    function look(chunk: Buffer): void {
      output += chunk.toString();
      const address = /listening on (http:\/\/127\.0\.0\.1:\d+)/.exec(output)?.[1];
      if (address === undefined) return;
      clearTimeout(deadline);
      resolve(address);
    }
    server.stdout.on("data", look);
    server.stderr.on("data", look);
    server.once("error", (error) => fail(error.message));
    server.once("exit", (code, signal) => {
      clearTimeout(deadline);
      fail(`ended with ${code ?? signal}`);
    });
  });
  return { url, output: () => output };
}

/** The folder with package.json: the compiled tests lie deeper than the sources. */
function projectRoot(): string {
  let folder = import.meta.dirname;
  while (!existsSync(join(folder, "package.json"))) {
    const parent = dirname(folder);
    if (parent === folder) throw new Error("no package.json above the tests");
    folder = parent;
  }
  return folder;
}
