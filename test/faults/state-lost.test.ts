// The state folder goes, is swapped or refuses to be written under a running gateway: chats go on, nothing that was
// acknowledged is lost, nothing that cannot be kept is acknowledged.
import assert from "node:assert/strict";
import { access, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { cacheTalker, type GatewayFolders, makeFolders } from "../support/folders.ts";
import { startTestGateway, type TestGateway } from "../support/gateway.ts";
import { answersOf } from "../support/models.ts";
import { cannotMount, mountDisk } from "../support/mounts.ts";
import { patchWith } from "../support/requests.ts";

interface Set {
  readonly gateway: TestGateway;
  readonly alpha: string;
  setSize(ctxSize: number): ReturnType<TestGateway["json"]>;
  /** As a next start would find it. */
  sizeOnDisk(): Promise<unknown>;
  saysOfState(reason: string): Promise<string>;
}

async function start(t: Parameters<typeof startTestGateway>[0], folders: GatewayFolders): Promise<Set> {
  const alpha = await cacheTalker(folders, "acme/alpha");
  const gateway = await startTestGateway(t, { folders, yaml: `version: 1\nmodels: [{ id: "${alpha}" }]\n` });
  await gateway.converged();
  return {
    gateway,
    alpha,
    setSize: (ctxSize) => gateway.json("/api/desired?wait=true", patchWith({ models: { [alpha]: { ctxSize } } })),
    sizeOnDisk: async () => {
      const text = await readFile(join(folders.stateDir, "desired.json"), "utf8").catch(() => "{}");
      const { tree } = JSON.parse(text) as { tree?: { models: Record<string, { ctxSize?: number }> } };
      return tree?.models[alpha]?.ctxSize;
    },
    saysOfState: async (reason) => {
      const is = (entry: { type: string; reason: string }): boolean =>
        entry.type === "StateWritable" && entry.reason === reason;
      const status = await gateway.until(`StateWritable: ${reason}`, (now) => now.conditions.some(is));
      return status.conditions.find(is)?.message ?? "";
    },
  };
}

test("a state folder that is deleted, or replaced by another: nothing is written, changes are refused, chats go on, and it is well when the old one is back", async (t) => {
  const folders = await makeFolders(t);
  const { gateway, alpha, setSize, sizeOnDisk, saysOfState } = await start(t, folders);
  assert.equal((await setSize(1024)).status, 200);
  await rename(folders.stateDir, `${folders.stateDir}.away`);
  assert.match(await saysOfState("StateUnwritable"), /put the folder back/);
  assert.equal((await setSize(2048)).status, 500);
  assert.equal(await gateway.ask(alpha), answersOf("acme/alpha").hello);
  await assert.rejects(access(folders.stateDir));
  await mkdir(folders.stateDir);
  const other = `{"generation": 3, "tree": {"version": 1}, "owners": {}}`;
  await writeFile(join(folders.stateDir, "desired.json"), other);
  const { status, body } = await setSize(2048);
  assert.equal(status, 500);
  assert.equal((body["error"] as { code: string }).code, "state_unwritable");
  assert.equal((await gateway.json("/readyz")).status, 200);
  const { user, system } = process.cpuUsage();
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  const used = process.cpuUsage();
  const usedMs = Math.round((used.user + used.system - user - system) / 1000);
  assert.ok(usedMs < 600, `${usedMs} ms of processor time in 3 s`);
  assert.equal(await gateway.ask(alpha), answersOf("acme/alpha").hello);
  assert.equal(await readFile(join(folders.stateDir, "desired.json"), "utf8"), other);
  assert.deepEqual(await readdir(folders.stateDir), ["desired.json"]);
  await rm(folders.stateDir, { recursive: true });
  await rename(`${folders.stateDir}.away`, folders.stateDir);
  await saysOfState("Writable");
  assert.equal((await setSize(2048)).status, 200);
  assert.equal(await sizeOnDisk(), 2048);
});

test("a state folder that is read-only, then full: changes are refused whole, and taken again by themselves", {
  skip: cannotMount,
}, async (t) => {
  const folders = await makeFolders(t);
  const disk = mountDisk(t, folders.stateDir, "256k");
  const { gateway, alpha, setSize, sizeOnDisk, saysOfState } = await start(t, folders);
  assert.equal((await setSize(1024)).status, 200);
  await disk.remount("remount,ro");
  assert.match(await saysOfState("StateUnwritable"), /EROFS/);
  for (const [path, body] of [
    ["/api/set-ctx-size", { model: alpha, ctx_size: 2048 }],
    ["/api/remove-model", { model: alpha }],
  ] as const) {
    const refused = await gateway.json(path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    assert.equal(refused.status, 500, JSON.stringify(refused.body));
    assert.equal((refused.body["error"] as { code: string }).code, "state_unwritable");
  }
  assert.equal(gateway.gateway.status().generation, 2);
  assert.equal(await gateway.ask(alpha), answersOf("acme/alpha").hello);
  await disk.remount("remount,rw");
  await saysOfState("Writable");

  const ballast = join(folders.stateDir, "ballast");
  await assert.rejects(writeFile(ballast, Buffer.alloc(1 << 20)));
  const full = await setSize(2048);
  assert.deepEqual([full.status, (full.body["error"] as { code: string }).code], [507, "disk_full"]);
  await saysOfState("DiskFull");
  assert.equal(await sizeOnDisk(), 1024);
  await rm(ballast);
  await saysOfState("Writable");
  assert.equal((await setSize(2048)).status, 200);
  assert.equal(await sizeOnDisk(), 2048);
});
