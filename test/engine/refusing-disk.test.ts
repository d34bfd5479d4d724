// A gateway that is killed, and whose state folder's disk takes no writes when the next one starts: leftovers are ended, chats
// are served as the last document says, and changes are refused until the disk is mended.
import assert from "node:assert/strict";
import { readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { findLeftovers } from "../../src/engines/process/leftovers.ts";
import { removeTemporaries } from "../../src/state/atomic-file.ts";
import { lockHolder } from "../../src/state/lock.ts";
import { type RunningCommand, runCommand, startCommand } from "../support/command.ts";
import { cacheTalker, type GatewayFolders, makeFolders } from "../support/folders.ts";
import { answersOf } from "../support/models.ts";
import { cannotMount, type Disk, mountDisk } from "../support/mounts.ts";
import { isRunning } from "../support/processes.ts";
import { chatWith, patchWith } from "../support/requests.ts";
import { until } from "../support/scratch.ts";

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
}

interface Running {
  readonly serve: RunningCommand;
  readonly url: string;
}

async function start(t: TestContext, folders: GatewayFolders): Promise<Running> {
  const serve = await startCommand(t, folders, ["serve"]);
  const [, url = ""] = await serve.output(/listens on (\S+);/);
  return { serve, url };
}

/** Answers with the processes that it left. */
async function kill({ serve }: Running, { stateDir }: GatewayFolders): Promise<readonly number[]> {
  serve.process.kill("SIGKILL");
  await serve.exited;
  const left = await findLeftovers(stateDir);
  assert.equal(left.length, 2, "router and model live on");
  return left;
}

async function ask(url: string, model: string): Promise<unknown> {
  const response = await fetch(`${url}/v1/chat/completions`, chatWith(model));
  const body = (await response.json()) as { choices?: { message: { content: string } }[] };
  return body.choices?.[0]?.message.content ?? body;
}

async function stateOf(url: string): Promise<Condition | undefined> {
  const { conditions } = (await (await fetch(`${url}/status`)).json()) as { conditions: readonly Condition[] };
  return conditions.find(({ type }) => type === "StateWritable");
}

const refusals = {
  "read-only": {
    refuse: async (disk: Disk, ballast: string) => {
      // What a kill in mid-write leaves; here it stays.
      await writeFile(`${ballast}.01234567.tmp`, "{");
      await disk.remount("remount,ro");
    },
    mend: async (disk: Disk, ballast: string) => {
      await disk.remount("remount,rw");
      return rm(`${ballast}.01234567.tmp`);
    },
    said: [500, "state_unwritable", "StateUnwritable"],
  },
  full: {
    refuse: async (_: Disk, ballast: string) => {
      // The start removes what a kill in mid-write leaves, which would make room.
      await removeTemporaries(dirname(ballast));
      await assert.rejects(writeFile(ballast, Buffer.alloc(1 << 20)));
    },
    mend: (_: Disk, ballast: string) => rm(ballast),
    said: [507, "disk_full", "DiskFull"],
  },
} as const;

test("a gateway starts on a state folder that takes no writes, serves the last document, and is whole once it does", {
  skip: cannotMount,
}, async (t) => {
  const folders = await makeFolders(t);
  const disk = mountDisk(t, folders.stateDir, "256k");
  const model = await cacheTalker(folders, "acme/alpha");
  await folders.writeConfig(`version: 1\nmodels: [{ id: "${model}", ctxSize: 1024 }]\n`);
  const ballast = join(folders.stateDir, "ballast");
  let gateway = await start(t, folders);
  await gateway.serve.output(/curl/);
  assert.equal(await ask(gateway.url, model), answersOf("acme/alpha").hello);

  for (const [what, { refuse, mend, said }] of Object.entries(refusals)) {
    await t.test(what, async () => {
      const left = await kill(gateway, folders);
      await refuse(disk, ballast);
      gateway = await start(t, folders);
      for (const pid of left) assert.equal(await isRunning(pid), false, `process ${pid} of the killed gateway`);
      await gateway.serve.output(/curl/);
      assert.equal(await ask(gateway.url, model), answersOf("acme/alpha").hello);
      const state = await stateOf(gateway.url);
      assert.deepEqual([state?.status, state?.reason], ["False", said[2]]);

      const change = () => fetch(`${gateway.url}/api/desired?wait=true`, patchWith({ context: { default: 2048 } }));
      const refused = await change();
      const { error } = (await refused.json()) as { error: { code: string } };
      assert.deepEqual([refused.status, error.code], said.slice(0, 2));
      // Without the file they cannot find it.
      assert.match((await runCommand(t, folders, ["status"])).stderr, /no gateway runs on the state folder/);

      await mend(disk, ballast);
      await until("writable", async () => (await stateOf(gateway.url))?.status === "True");
      assert.equal((await lockHolder(folders.stateDir))?.url, gateway.url);
      assert.equal((await change()).status, 200);
      assert.match(await readFile(join(folders.stateDir, "desired.json"), "utf8"), /2048/);
      const undo = await fetch(`${gateway.url}/api/desired?wait=true`, patchWith({ context: null }));
      assert.equal(undo.status, 200);
      assert.equal(await ask(gateway.url, model), answersOf("acme/alpha").hello);
    });
  }
});
