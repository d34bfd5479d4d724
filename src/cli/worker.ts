// `worker`: lends this machine to a gateway elsewhere, as a ggml-rpc-server that is kept running.
import { lookup } from "node:dns/promises";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { GatewayError, reasonOf } from "../core/errors.ts";
import { steadyNow } from "../core/steady.ts";
import { isTrustedAddress, parseWorker } from "../core/worker-address.ts";
import { installEngine } from "../engines/install/install.ts";
import { locateEngine } from "../engines/install/locate.ts";
import { freePort } from "../engines/process/free-port.ts";
import { endLeftovers } from "../engines/process/leftovers.ts";
import { runRpcWorker } from "../rpc/rpc-worker.ts";
import { openDoor } from "../rpc/worker-door.ts";
import { wholeNumber } from "../settings/kinds.ts";
import type { CommandLine, Settings } from "../settings/settings.ts";
import { withLock } from "../state/lock.ts";
import { rpcWarning } from "../status/worker-conditions.ts";
import { forgetSecrets } from "./forget-secrets.ts";
import { installProgress } from "./progress.ts";
import { stopOnSignals } from "./signals.ts";

/** Output of each probe, and of the folders that the engine searches before the right one. */
const routine =
  /^(?:Accepted client connection|Client connection closed|recv returned 0 |ggml_backend_load_best: failed to enumerate ).*\n?/gm;

/** Runs until a signal ends it. */
export async function workerCommand({ settings, given }: CommandLine): Promise<number> {
  const left = forgetSecrets();
  if (left.length > 0) console.error(`other processes of this user can read ${left.join(", ")} in the environment`);
  const port = wholeNumber(given("port") ?? "50052", "--port", 1, 65_535);
  // 0: as many as the engine thinks fit.
  const threads = wholeNumber(given("threads") ?? "0", "--threads", 0, 4096) || null;
  const asked = given("host") ?? "127.0.0.1";
  const host = await ownAddress(asked);
  const innerPort = await freePort();
  // Before anything is waited for or downloaded: the port may be taken.
  const door = await openDoor(host, port, innerPort);
  const name = `worker-${port}.lock`;
  const work = withLock(settings.stateDir, name, async () => {
    const stop = new AbortController();
    let over: Promise<unknown> = Promise.resolve();
    stopOnSignals(
      async () => {
        stop.abort();
        await over;
      },
      (error) => console.error(String(error)),
    );
    const binary = await findBinary(settings, stop.signal);
    const owner = `${settings.stateDir}/${name}`;
    await endLeftovers(owner);
    // A name stays one, as the address behind it may change.
    printDocument(parseWorker(`${asked}:${port}`) ? asked : host, port);
    over = runRpcWorker(
      {
        binary,
        port: innerPort,
        threads,
        environment: settings.environment,
        workingDir: settings.stateDir,
        owner,
        stopGraceMs: settings.stopGraceMs,
        onOutput: (text) => process.stderr.write(text.replace(routine, "")),
        onStart: (pid) => console.log(`The worker runs as process ${pid}.`),
        onExit: ({ code, signal }, againAt) => {
          const seconds = Math.round((againAt - steadyNow()) / 1000);
          console.log(`The worker ended (${signal ?? code}); it restarts${seconds > 0 ? ` in ${seconds} s` : ""}.`);
        },
      },
      stop.signal,
    );
    await over;
  });
  try {
    await work;
  } finally {
    await door.close();
  }
  return 0;
}

async function findBinary(
  { rpcServer, stateDir, environment, installEngine: may, command }: Settings,
  signal: AbortSignal,
): Promise<string> {
  const enginesDir = join(stateDir, "engines");
  const where = { explicit: rpcServer, pathVariable: environment["PATH"] ?? "", enginesDir };
  const found = await locateEngine("ggml-rpc-server", where);
  if (found !== null) return found;
  if (!may)
    throw new GatewayError(
      "engine_missing",
      `no ggml-rpc-server was found: run \`${command("engine", "install", "llama")}\`, or name one with --rpc-server`,
    );
  await installEngine("llama", {
    enginesDir,
    environment,
    signal,
    onProgress: installProgress("llama", process.stderr),
  });
  const installed = await locateEngine("ggml-rpc-server", where);
  if (installed !== null) return installed;
  throw new GatewayError("engine_missing", "the installed llama.cpp has no ggml-rpc-server");
}

/** Where to listen: the engine reaches workers by IPv4 only. */
async function ownAddress(host: string): Promise<string> {
  if (host.trim() === "") throw new GatewayError("invalid_request", "--host is empty; 0.0.0.0 means every address");
  if (host.includes(":"))
    throw new GatewayError("invalid_request", `--host ${host}: gateways reach workers by IPv4 only`);
  try {
    return (await lookup(host, { family: 4 })).address;
  } catch (error) {
    const why = reasonOf(error);
    throw new GatewayError("invalid_request", `--host ${host} is no address of this machine (${why})`, {
      cause: error,
    });
  }
}

/** The lines for the gateway's document, one for each address of this machine. */
function printDocument(host: string, port: number): void {
  const hosts = host === "0.0.0.0" ? ownAddresses() : [host];
  console.log("Add this to the document (gateway.yaml) of the gateway:\n");
  for (const address of hosts) console.log(`  rpc: { mode: rpc, workers: ["${address}:${port}"] }`);
  if (hosts.length > 1) console.log("\n(one of them: all are this machine)");
  const isLocal = hosts.every((address) => address.startsWith("127.") || address === "localhost");
  const reach = isLocal
    ? "Only this machine reaches it; --host ADDRESS binds it to one that others reach."
    : rpcWarning;
  console.log(`\n${reach}\n`);
}

/** `ADDRESS` stands for the one that is not known here. */
function ownAddresses(): string[] {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  const others = all.filter(
    ({ family, internal, address }) => family === "IPv4" && !internal && isTrustedAddress(address),
  );
  return others.length > 0 ? others.map(({ address }) => address) : ["ADDRESS"];
}
