// `model-gateway key`, as people and scripts run it, and what keeps several of them apart.
import assert from "node:assert/strict";
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { runCommand as runHere } from "../../../src/cli/commands.ts";
import { addKey } from "../../../src/keys/key-changes.ts";
import { hashOf, keyFileName, keyLockName } from "../../../src/keys/key-file.ts";
import { readSettings } from "../../../src/settings/settings.ts";
import { withLock } from "../../../src/state/lock.ts";
import { commandHere, runCommand } from "../../support/command.ts";
import { type GatewayFolders, makeFolders } from "../../support/folders.ts";
import { refusal, scratchFolder } from "../../support/scratch.ts";

interface Stored {
  readonly keys: readonly {
    readonly name: string;
    readonly hash: string;
    readonly scope?: string;
    readonly expiresAt?: string;
  }[];
}

async function stored(folders: Pick<GatewayFolders, "stateDir">): Promise<Stored["keys"]> {
  return (JSON.parse(await readFile(join(folders.stateDir, keyFileName), "utf8")) as Stored).keys;
}

/** In this process; answers with what goes to stdout. */
async function run(t: TestContext, stateDir: string, ...args: readonly string[]): Promise<string> {
  const lines: string[] = [];
  const log = t.mock.method(console, "log", (line: string) => void lines.push(line));
  const error = t.mock.method(console, "error", () => undefined);
  try {
    assert.equal(await runHere(readSettings(["key", ...args, "--state", stateDir], {})), 0);
    return lines.join("\n");
  } finally {
    log.mock.restore();
    error.mock.restore();
  }
}

describe("interface 5, Authentication: the key command", () => {
  it("makes a key, shows it once, lists it without, and revokes it", async (t) => {
    const folders = await makeFolders(t);
    const none = await runCommand(t, folders, ["key", "list"]);
    assert.equal(none.code, 0);
    assert.match(none.stdout, /^No license keys: `.* key create NAME .*` creates one\.\n$/);

    const created = await runCommand(t, folders, ["key", "create", "laptop", "--expires", "30d"]);
    assert.equal(created.code, 0, created.stderr);
    const key = created.stdout.trim();
    assert.match(created.stdout, /^mgw_[\w-]{43}\n$/);
    for (const part of ["laptop", "shown only once", "Authorization: Bearer", "/k/KEY"])
      assert.ok(created.stderr.includes(part), created.stderr);
    const [entry] = await stored(folders);
    assert.deepEqual([entry?.name, entry?.hash], ["laptop", hashOf(key)]);
    assert.ok(Math.abs(Date.parse(entry?.expiresAt ?? "") - Date.now() - 30 * 86_400_000) < 60_000);
    assert.equal((await stat(join(folders.stateDir, keyFileName))).mode & 0o777, 0o600);

    const list = await commandHere(folders, ["key", "list"]);
    assert.match(list.stdout, /^NAME +SCOPE +CREATED +EXPIRES\nlaptop +all +\S+Z +\S+Z\n$/);
    assert.ok(!list.stdout.includes(entry?.hash ?? "-") && !list.stdout.includes(key));

    const revoked = await runCommand(t, folders, ["key", "revoke", "laptop"]);
    assert.equal(revoked.code, 0);
    assert.match(
      revoked.stdout,
      /^License key laptop is revoked\.\nIt was the last one: the gateway now refuses every request that needs a key/,
    );
    assert.deepEqual(await stored(folders), []);
  });

  it("speaks JSON", async (t) => {
    const stateDir = await scratchFolder(t);
    const json = async (...args: readonly string[]): Promise<unknown> =>
      JSON.parse(await run(t, stateDir, ...args, "--json"));
    const created = (await json("create", "ci", "--expires", "2099-01-01")) as Record<string, string>;
    assert.deepEqual(Object.keys(created), ["name", "scope", "createdAt", "expiresAt", "key"]);
    assert.deepEqual([created["name"], created["expiresAt"]], ["ci", "2099-01-01T00:00:00.000Z"]);
    assert.deepEqual(await json("list"), [
      { name: "ci", scope: "all", createdAt: created["createdAt"], expiresAt: created["expiresAt"] },
    ]);
    assert.deepEqual(await json("revoke", "ci"), { revoked: "ci", left: 0 });
  });

  it("makes a key of a scope, and lists it", async (t) => {
    const stateDir = await scratchFolder(t);
    const key = await run(t, stateDir, "create", "phone", "--scope", "chat");
    assert.match(key, /^mgw_[\w-]{43}$/);
    assert.deepEqual(
      (await stored({ stateDir })).map(({ name, scope }) => [name, scope]),
      [["phone", "chat"]],
    );
    assert.match(await run(t, stateDir, "list"), /^NAME +SCOPE +CREATED +EXPIRES\nphone +chat +\S+Z +never$/);
    const [listed] = JSON.parse(await run(t, stateDir, "list", "--json")) as { scope: string }[];
    assert.equal(listed?.scope, "chat");
  });

  it("marks an expired key, and makes no second one of its name", async (t) => {
    const stateDir = await scratchFolder(t);
    const old = {
      name: "old",
      hash: hashOf("x"),
      createdAt: "2020-01-01T00:00:00Z",
      expiresAt: "2020-02-01T00:00:00Z",
    };
    await writeFile(join(stateDir, keyFileName), JSON.stringify({ version: 1, keys: [old] }));
    assert.match(await run(t, stateDir, "list"), /old .*2020-02-01T00:00:00Z \(expired\)/);
    assert.match((await refusal(run(t, stateDir, "create", "old"))).message, /^there is an expired key named old/);
    assert.deepEqual(await stored({ stateDir }), [old]);
  });

  for (const [args, message] of [
    [["create"], /^key create needs NAME; /],
    [["create", "a", "--scope", "read"], /^--scope must be all or chat, not "read"$/],
    [["create", "a b"], /^a key's name begins with/],
    [["create", "a", "--expires", "soon"], /^--expires must be a time to come such as .* or 2027-01-01, not "soon"$/],
    [["create", "a", "--expires", "2020-01-01"], /^--expires must be a time to come/],
    [["revoke", "nobody"], /^there is no key named "nobody", nor any other$/],
  ] as const) {
    it(`refuses \`key ${args.join(" ")}\`, and writes nothing`, async (t) => {
      const stateDir = await scratchFolder(t);
      const { code, message: told } = await refusal(run(t, stateDir, ...args));
      assert.equal(code, "invalid_request");
      assert.match(told, message);
      assert.deepEqual(await readdir(stateDir), []);
    });
  }

  it("ends with 1 and one line where it refuses", async (t) => {
    const folders = await makeFolders(t);
    const { code, stdout, stderr } = await runCommand(t, folders, ["version", "--expires", "1d"]);
    assert.deepEqual([code, stdout], [1, ""]);
    assert.match(stderr, /^model-gateway: version does not take --expires, which is for key create; .*\n$/);
  });

  it("loses no key when many are made at once, by one process or by several", async (t) => {
    const folders = await makeFolders(t);
    const names = Array.from({ length: 12 }, (_, index) => `key-${index}`);
    const [here, there] = [names.slice(0, 9), names.slice(9)];
    const make = (name: string): Promise<unknown> =>
      withLock(folders.stateDir, keyLockName, () =>
        addKey(join(folders.stateDir, keyFileName), { name, expiresAt: undefined, now: Date.now() }),
      );
    const commands = there.map((name) => runCommand(t, folders, ["key", "create", name]));
    await Promise.all(here.map(make));
    assert.deepEqual(new Set((await Promise.all(commands)).map(({ code }) => code)), new Set([0]));
    assert.deepEqual((await stored(folders)).map(({ name }) => name).sort(), [...names].sort());
    assert.deepEqual(await readdir(folders.stateDir), [keyFileName]);
  });

  it("takes over the lock of one that was killed", async (t) => {
    const stateDir = await scratchFolder(t);
    const dead = { pid: 2 ** 22 - 7, started: "1", id: "a" };
    await writeFile(join(stateDir, keyLockName), JSON.stringify(dead));
    await run(t, stateDir, "create", "a");
    assert.deepEqual(await readdir(stateDir), [keyFileName]);
  });

  it("makes the state folder where there is none, and says where it cannot", async (t) => {
    const root = await scratchFolder(t);
    await run(t, join(root, "deep", "state"), "create", "a");
    assert.equal((await stored({ stateDir: join(root, "deep", "state") })).length, 1);
    await writeFile(join(root, "plain"), "");
    const error = await refusal(run(t, join(root, "plain"), "create", "a"));
    assert.match(error.message, /^the state folder .*plain cannot be used/);
  });
});
