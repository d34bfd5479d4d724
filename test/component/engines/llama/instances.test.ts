// The router's models as upstreams: they outlive a crash of their router for as long as somebody uses them.
import assert from "node:assert/strict";
import { readdir, readlink } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { describe, it, type TestContext } from "node:test";
import { createInstances, type Instances } from "../../../../src/engines/llama/instances.ts";
import { freePort } from "../../../../src/engines/process/free-port.ts";
import { startProcess } from "../../../../src/engines/process/managed-process.ts";
import type { RouterModel } from "../../../../src/plan/observed.ts";
import { cleanUp } from "../../../support/clean-up.ts";
import { childrenOf, isRunning } from "../../../support/processes.ts";
import { fakeEngine, scratchFolder, until } from "../../../support/scratch.ts";

const linux = {
  skip: process.platform === "linux" ? false : "a child's standard input can be held open on Linux alone",
};

function loaded(id: string, port: string, value = "loaded"): RouterModel {
  return { id, value, failed: false, args: ["llama-server", "--port", port, "--alias", id], nCtx: null };
}

interface FakeRouter {
  readonly pid: number;
  readonly models: readonly number[];
  readonly instances: Instances;
}

/** A router with a model on each port; ports are only names here, nobody listens. */
async function routerWith(t: TestContext, ...ports: readonly string[]): Promise<FakeRouter> {
  let output = "";
  const router = await startProcess({
    path: process.execPath,
    args: fakeEngine(...(ports.length > 0 ? [`--models=${ports.join(",")}`] : [])),
    environment: { PATH: process.env["PATH"] ?? "" },
    workingDir: await scratchFolder(t),
    onOutput: (text) => {
      output += text;
    },
  });
  cleanUp(t, () => router.stop(0));
  await until("all models are ready", () => output.match(/ready/g)?.length === ports.length + 1);
  const instances = createInstances((message) => assert.fail(message));
  cleanUp(t, () => instances.detachAll());
  return { pid: router.pid, models: await childrenOf(router.pid), instances };
}

async function crash(pid: number): Promise<void> {
  process.kill(pid, "SIGKILL");
  await until("the router has ended", async () => !(await isRunning(pid)));
}

async function ended(pid: number): Promise<boolean> {
  return until("the model has ended", async () => !(await isRunning(pid)));
}

describe("instances", linux, () => {
  it("are the loaded models with a port, at their own address", async (t) => {
    const { pid, models, instances } = await routerWith(t, "50001", "50002");
    assert.deepEqual(instances.pids(), []);
    instances.update(pid, "key", [
      loaded("a", "50001"),
      loaded("b", "50002", "loading"),
      loaded("c", "0"),
      { ...loaded("d", ""), args: ["--port"] },
    ]);
    assert.equal(instances.get("a")?.origin, "http://127.0.0.1:50001");
    assert.equal(instances.get("a")?.key, "key");
    assert.deepEqual(["b", "c", "d"].map(instances.get), [null, null, null]);
    assert.deepEqual(instances.pids().toSorted(), models.toSorted(), "one that is being loaded is a process, too");
    instances.update(pid, "key", [loaded("b", "50002")]);
    assert.equal(instances.get("a"), null);
    assert.equal(instances.get("b")?.origin, "http://127.0.0.1:50002");
  });

  it("in use live on when the router crashes, and end with their last answer; the others end with it", async (t) => {
    const { pid, models, instances } = await routerWith(t, "50001", "50002");
    const [used = 0, idle = 0] = models;
    instances.update(pid, "key", [loaded("a", "50001"), loaded("b", "50002")]);
    const first = instances.get("a")?.retain();
    const second = instances.get("a")?.retain();
    await crash(pid);
    instances.detachAll();
    assert.equal(await ended(idle), true);
    assert.equal(instances.get("a"), null);
    assert.equal(instances.detachedUsers(), 2);
    first?.();
    first?.();
    assert.equal(instances.detachedUsers(), 1);
    assert.equal(await isRunning(used), true);
    second?.();
    assert.equal(instances.detachedUsers(), 0);
    assert.equal(await ended(used), true);
  });

  it("that nobody uses are not held at all once they leave the list", async (t) => {
    const { pid, instances } = await routerWith(t, "50001");
    const pipes = (): Promise<string[]> => openPipes();
    const before = await pipes();
    instances.update(pid, "key", [loaded("a", "50001")]);
    const during = await pipes();
    assert.equal(during.length, before.length + 1);
    instances.update(pid, "key", []);
    await until("the pipe is closed", async () => (await pipes()).length === before.length);
  });

  it("are new ones with a new router, though the ids are the same", async (t) => {
    const first = await routerWith(t, "50001");
    const second = await routerWith(t, "50001");
    const { instances } = first;
    instances.update(first.pid, "key 1", [loaded("a", "50001")]);
    const letGo = instances.get("a")?.retain();
    instances.update(second.pid, "key 2", [loaded("a", "50001")]);
    assert.equal(instances.get("a")?.key, "key 2");
    assert.equal(instances.detachedUsers(), 1);
    letGo?.();
    assert.equal(instances.detachedUsers(), 0);
  });

  it("stay the same ones while the list is", async (t) => {
    const { pid, models, instances } = await routerWith(t, "50001");
    instances.update(pid, "key", [loaded("a", "50001")]);
    const letGo = instances.get("a")?.retain();
    instances.update(pid, "key", [loaded("a", "50001")]);
    assert.equal(instances.detachedUsers(), 0);
    await crash(pid);
    instances.detachAll();
    letGo?.();
    assert.equal(await ended(models[0] ?? 0), true);
  });

  it("of a router that is not there are listed all the same", async (t) => {
    const { pid, instances } = await routerWith(t);
    await crash(pid);
    instances.update(pid, "key", [loaded("a", "50001")]);
    assert.equal(instances.get("a")?.origin, "http://127.0.0.1:50001");
  });
});

describe("a free port", () => {
  it("can be listened on, and is not given out twice while it is taken", async (t) => {
    const ports = await Promise.all([freePort(), freePort(), freePort()]);
    const servers = await Promise.all(ports.map(listen));
    cleanUp(t, () => Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve)))));
    const next = await freePort();
    assert.ok(!ports.includes(next));
  });
});

function listen(port: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => resolve(server));
  });
}

/** Pipes that this process has open for writing. */
async function openPipes(): Promise<string[]> {
  const links = await Promise.all(
    (await readdir("/proc/self/fd")).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => "")),
  );
  return links.filter((link) => link.includes("/input-"));
}
