// `model-gateway worker`: a real ggml-rpc-server that is kept running and ends with the command.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { freePort } from "../../src/engines/process/free-port.ts";
import { dial, speak } from "../../src/rpc/worker-wire.ts";
import { runCommand, startCommand } from "../support/command.ts";
import { rpcServer } from "../support/engine.ts";
import { makeFolders } from "../support/folders.ts";
import { answersOf } from "../support/models.ts";
import { isRunning } from "../support/processes.ts";
import { reachable, startRpcGateway } from "../support/rpc-gateway.ts";

async function takesConnections(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  const taken = await once(socket, "connect").then(
    () => true,
    () => false,
  );
  socket.destroy();
  return taken;
}

test("it says what to put into the document, serves a gateway, is started again when it dies, and ends on a signal", async (t) => {
  const folders = await makeFolders(t);
  const port = await freePort();
  const environment = { GGML_RPC_SERVER: await rpcServer() };
  const worker = await startCommand(t, folders, ["worker", "--port", String(port), "--threads", "1"], environment);
  await worker.output(new RegExp(`rpc: \\{ mode: rpc, workers: \\["127\\.0\\.0\\.1:${port}"\\] \\}`));
  const [, first] = await worker.output(/runs as process (\d+)/);
  while (!(await takesConnections(port))) await new Promise(setImmediate);

  const gateway = await startRpcGateway(t, [{ address: `127.0.0.1:${port}` }]);
  assert.equal(await gateway.ask(gateway.model), answersOf("acme/talker").hello);
  const killedAt = performance.now();
  process.kill(Number(first), "SIGPIPE");
  await worker.output(/ended \(SIGPIPE\)/);
  const [, second] = await worker.output(/ended[\s\S]*runs as process (\d+)/);
  assert.notEqual(second, first);
  // What the old process held of the model is gone with it: the model must not go on with the new one.
  assert.equal(await gateway.ask(gateway.model), answersOf("acme/talker").hello);
  t.diagnostic(`answered ${Math.round(performance.now() - killedAt)} ms after the worker was killed and started again`);
  await gateway.until("back", (status) => reachable(status)[0] === "True Answering");

  worker.process.kill("SIGTERM");
  const { code, stderr } = await worker.exited;
  assert.equal(code, 0);
  assert.doesNotMatch(stderr, /failed to enumerate|Accepted client/);
  assert.equal(await isRunning(Number(second)), false);
});

test("it outlives clients that leave while they wait, which kills a bare ggml-rpc-server", async (t) => {
  const folders = await makeFolders(t);
  const port = await freePort();
  const target = { host: "127.0.0.1", port };
  const worker = await startCommand(t, folders, ["worker", "--port", String(port)], {
    GGML_RPC_SERVER: await rpcServer(),
  });
  const [, pid] = await worker.output(/runs as process (\d+)/);
  while ((await speak(target, 500).catch(() => null))?.kind !== "answered") await new Promise(setImmediate);
  // In front, and silent.
  const first = await dial(target, 500);
  const greeting = Buffer.alloc(33);
  greeting[0] = 14;
  greeting.writeBigUInt64LE(24n, 1);
  for (let waiting = 0; waiting < 2; waiting++) {
    const second = await dial(target, 500);
    await new Promise((resolve) => second.socket.write(greeting, resolve));
    second.socket.resetAndDestroy();
  }
  first.socket.destroy();
  assert.equal((await speak(target, 2_000)).kind, "answered");
  assert.equal(await isRunning(Number(pid)), true);
});

test("a port that is taken and flags that are none end it with a reason", async (t) => {
  const folders = await makeFolders(t);
  const environment = { GGML_RPC_SERVER: await rpcServer() };
  const port = String(await freePort());
  const worker = await startCommand(t, folders, ["worker", "--port", port], environment);
  await worker.output(/runs as process/);
  while (!(await takesConnections(Number(port)))) await new Promise(setImmediate);
  const elsewhere = await makeFolders(t);
  const second = await runCommand(t, elsewhere, ["worker", "--port", port], environment);
  assert.equal(second.code, 1);
  assert.match(second.stderr, /cannot be listened on \(EADDRINUSE\)/);
  // Before the lock, which waits for a while, and before an engine would be fetched.
  const same = await runCommand(t, folders, ["worker", "--port", port], environment);
  assert.match(same.stderr, /cannot be listened on \(EADDRINUSE\)/);
  const hosts: readonly (readonly [string, RegExp])[] = [
    ["", /--host is empty; 0\.0\.0\.0 means every address/],
    ["::1", /--host ::1: gateways reach workers by IPv4 only/],
    ["203.0.113.9", /203\.0\.113\.9:\d+ cannot be listened on \(EADDRNOTAVAIL\)/],
    ["nobody.invalid", /nobody\.invalid is no address of this machine/],
  ];
  const nowhere = { GGML_RPC_SERVER: "/nonexistent" };
  await Promise.all(
    hosts.map(async ([host, why]) => {
      const { code, stderr } = await runCommand(t, elsewhere, ["worker", "--host", host], nowhere);
      assert.equal(code, 1, host);
      assert.match(stderr, why);
    }),
  );
  const help = await runCommand(t, elsewhere, ["worker", "--help"]);
  assert.match(help.stdout, /^Usage: model-gateway worker/);
  assert.doesNotMatch(help.stdout, /--models-max/);
  const wrong = await runCommand(t, folders, ["worker", "--port", "0"], environment);
  assert.match(wrong.stderr, /--port must be a number from 1/);
  assert.match(
    (await runCommand(t, folders, ["plan", "--threads", "2"])).stderr,
    /does not take --threads, which is for worker/,
  );
});
