// The real engines for tests. A missing engine is a failure and not a skip: what is not run is not known to work.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, rename, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { TestContext } from "node:test";
import { ignoreAbsent } from "../../src/core/errors.ts";
import { type EngineBinary, type EngineName, engineFacts } from "../../src/engines/install/catalog.ts";
import { installEngine } from "../../src/engines/install/install.ts";
import { locateEngine, toolBeside } from "../../src/engines/install/locate.ts";
import { packageRoot } from "../../src/settings/settings.ts";
import { cleanUp } from "./clean-up.ts";
import { patientEngine } from "./patience.ts";

export const enginesDir = process.env["MODEL_GATEWAY_TEST_ENGINES"] ?? join(packageRoot, "state", "engines");

/**
 * Absolute path of the llama-server to test with: the real one, whose models compute with one thread. Two wait for each other at each
 * step, with a busy core each: a short chat took 250 ms of processor time beside other tests, and 1 ms with one thread.
 */
export async function llamaServer(): Promise<string> {
  const server = await installedServer();
  const script = `#!/bin/sh\nLLAMA_ARG_THREADS=1 exec '${server}' "$@"\n`;
  const path = join(packageRoot, "dist", "test", "llama-server");
  if ((await readFile(path, "utf8").catch(ignoreAbsent)) === script) return path;
  for (const tool of engineFacts.llama.optional) {
    const real = await toolBeside(server, tool);
    // The gateway takes the tools that lie beside its llama-server.
    if (real !== null) await putInPlace(join(dirname(path), tool), (own) => symlink(real, own));
  }
  await putInPlace(path, (own) => writeFile(own, script, { mode: 0o755 }));
  return path;
}

let made = 0;

/** Several tests and processes may make it at once: each finds a whole one there. */
async function putInPlace(path: string, make: (own: string) => Promise<void>): Promise<void> {
  const own = `${path}.${process.pid}.${++made}`;
  await make(own);
  await rename(own, path);
}

/** As its users run it. */
export function installedServer(): Promise<string> {
  return engine("llama", "llama-server");
}

export function rpcServer(): Promise<string> {
  return engine("llama", "ggml-rpc-server");
}

export function whisperServer(): Promise<string> {
  return engine("whisper", "whisper-server");
}

async function engine(name: EngineName, binary: EngineBinary): Promise<string> {
  const found = await located(binary);
  if (found !== null) return found;
  throw new Error(`no ${binary} in PATH or ${enginesDir}: run \`model-gateway engine install ${name}\` first`);
}

function located(binary: EngineBinary): Promise<string | null> {
  return locateEngine(binary, { explicit: undefined, pathVariable: process.env["PATH"] ?? "", enginesDir });
}

/** Installs it where there is none. */
export async function provideEngine(name: EngineName, onProgress: (text: string) => void): Promise<void> {
  const { main, optional } = engineFacts[name];
  const found = await Promise.all([main, ...optional].map(located));
  if (!found.includes(null)) return;
  onProgress(`installing ${main} for the tests`);
  let last = "";
  await installEngine(name, {
    enginesDir,
    environment: process.env,
    signal: new AbortController().signal,
    onProgress: ({ phase, detail }) => {
      if (phase !== last) onProgress(`  ${phase}: ${detail}`);
      last = phase;
    },
  });
}

export interface RunningServer {
  /** `http://127.0.0.1:PORT` */
  readonly url: string;
  readonly pid: number;
  /** What it has written so far. */
  output(): string;
}

/**
 * Starts a llama-server of the test's own on a free loopback port and waits until it listens; the test's end stops it.
 * `environment` is all it gets beside PATH and the tests' own.
 */
export async function startLlamaServer(
  t: TestContext,
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<RunningServer> {
  const server = spawn(await llamaServer(), ["--host", "127.0.0.1", "--port", "0", "--offline", ...args], {
    env: { PATH: process.env["PATH"] ?? "", ...patientEngine, ...environment },
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
  return { url, pid: server.pid ?? 0, output: () => output };
}
