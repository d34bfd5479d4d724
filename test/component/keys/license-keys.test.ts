// The keys of a running gateway: what counts, when a change counts, and that no damage to the file lets anybody in.
import assert from "node:assert/strict";
import { chmod, mkdir, readFile, rename, rm, stat, truncate, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { GatewayError } from "../../../src/core/errors.ts";
import { addKey, makeKey, removeKey } from "../../../src/keys/key-changes.ts";
import { hashOf, keyFileName, listKeys } from "../../../src/keys/key-file.ts";
import { renderKeyList } from "../../../src/keys/key-list.ts";
import { type LicenseKeys, lookEveryMs, openLicenseKeys } from "../../../src/keys/license-keys.ts";
import { refusal, scratchFolder } from "../../support/scratch.ts";

interface Keys extends LicenseKeys {
  accepts(key: string): boolean;
  /** At the same time as before. */
  acceptsAtOnce(key: string): boolean;
  readonly path: string;
  readonly warnings: string[];
  /** ms */
  now: number;
  create(name: string, expiresAt?: string): Promise<string>;
}

const day = 86_400_000;

async function open(t: TestContext, single?: string, folder?: string): Promise<Keys> {
  const path = join(folder ?? (await scratchFolder(t)), keyFileName);
  const warnings: string[] = [];
  const clock = { now: Date.now() };
  const keys = openLicenseKeys({
    path,
    single,
    createCommand: "model-gateway key create NAME",
    now: () => clock.now,
    warn: (message, fields) => void warnings.push(`${message} ${JSON.stringify(fields)}`),
  });
  /** As at the first request after a while. */
  const later = (): LicenseKeys => {
    clock.now += lookEveryMs;
    return keys;
  };
  return Object.assign(clock, {
    path,
    warnings,
    areNone: () => later().areNone(),
    areRequired: () => later().areRequired(),
    scopeOf: (key: string) => later().scopeOf(key),
    nameOf: (key: string) => later().nameOf(key),
    accepts: (key: string) => later().scopeOf(key) !== null,
    acceptsAtOnce: (key: string) => keys.scopeOf(key) !== null,
    create: async (name: string, expiresAt?: string) => (await addKey(path, { name, expiresAt, now: clock.now })).key,
  });
}

function startRefusal(path: string, single?: string): GatewayError {
  try {
    openLicenseKeys({ path, single, createCommand: "", now: Date.now, warn: () => undefined });
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
  throw new Error("it was opened");
}

describe("interface 5, Authentication: license keys", () => {
  it("are 256 random bits and say what they are", () => {
    const keys = new Set(Array.from({ length: 50 }, () => makeKey()));
    assert.equal(keys.size, 50);
    for (const key of keys) assert.match(key, /^mgw_[\w-]{43}$/);
  });

  it("are needed as soon as there is one, and not before", async (t) => {
    const keys = await open(t);
    assert.deepEqual([keys.areRequired(), keys.accepts("")], [false, false]);
    const key = await keys.create("laptop");
    assert.deepEqual([keys.areRequired(), keys.accepts(key), keys.accepts(`${key}x`)], [true, true, false]);
    for (const wrong of ["", "x", key.slice(1), key.toUpperCase(), hashOf(key)]) assert.ok(!keys.accepts(wrong), wrong);
  });

  it("are kept as hashes only, in a file of its owner alone", async (t) => {
    const keys = await open(t);
    const key = await keys.create("laptop");
    const text = await readFile(keys.path, "utf8");
    assert.ok(!text.includes(key) && !text.includes(key.slice(4)));
    assert.deepEqual(
      listKeys(keys.path).map(({ name, hash }) => [name, hash]),
      [["laptop", hashOf(key)]],
    );
    assert.equal((await stat(keys.path)).mode & 0o777, 0o600);
  });

  it("count and stop counting within 100 ms", async (t) => {
    const keys = await open(t);
    const first = await keys.create("first");
    assert.ok(keys.accepts(first));
    const second = await keys.create("second");
    assert.deepEqual([keys.accepts(first), keys.accepts(second)], [true, true]);
    await removeKey(keys.path, "first");
    assert.equal(keys.acceptsAtOnce(first), true, "the file is not looked at again for every request");
    keys.now += 99;
    assert.equal(keys.acceptsAtOnce(first), true);
    keys.now += 1;
    assert.deepEqual([keys.acceptsAtOnce(first), keys.accepts(second)], [false, true]);
    await removeKey(keys.path, "second");
    keys.now -= day;
    assert.equal(keys.acceptsAtOnce(second), false, "also when the clock is set back");
  });

  it("count in a long file and in a short one after it; a file of 2 GiB changes nothing and is forgotten", async (t) => {
    const keys = await open(t);
    const first = await keys.create("first");
    const [entry] = listKeys(keys.path);
    assert.ok(entry);
    const many = Array.from({ length: 1_000 }, (_, n) => ({ ...entry, name: `n${n}`, hash: hashOf(String(n)) }));
    await writeFile(keys.path, renderKeyList([entry, ...many]));
    assert.deepEqual([keys.accepts(first), keys.accepts("0"), keys.accepts("999")], [true, true, true]);
    await truncate(keys.path, 2 ** 31);
    assert.deepEqual([keys.accepts(first), keys.accepts("999")], [true, true]);
    assert.match(keys.warnings.join(), /stay as they were last known.*more than 16777216 bytes/);
    await writeFile(keys.path, renderKeyList(many.slice(0, 1)));
    assert.deepEqual([keys.accepts(first), keys.accepts("0"), keys.accepts("999")], [false, true, false]);
  });

  it("stay needed when the last one is gone: an emptied file opens no door, nor does a start with one", async (t) => {
    const folder = await scratchFolder(t);
    const keys = await open(t, undefined, folder);
    const key = await keys.create("only");
    assert.ok(keys.accepts(key));
    await removeKey(keys.path, "only");
    assert.deepEqual([keys.areRequired(), keys.accepts(key), keys.accepts("")], [true, false, false]);
    assert.equal(keys.warnings.length, 1);
    assert.match(
      keys.warnings[0] ?? "",
      /^there is no license key, so requests are refused: `model-gateway key create/,
    );
    const again = await open(t, undefined, folder);
    assert.deepEqual([again.areRequired(), again.accepts(key)], [true, false]);
    // Only without a file, from the start, none is needed.
    await rm(keys.path);
    assert.equal(again.areRequired(), true);
    assert.equal((await open(t, undefined, folder)).areRequired(), false);
  });

  it("have a scope: that of their entry, all where it has none, all for the single one", async (t) => {
    const keys = await open(t, "a-key-from-the-environment");
    const all = await keys.create("all");
    const now = keys.now;
    const { key: chat } = await addKey(keys.path, { name: "chat", scope: "chat", expiresAt: undefined, now });
    const scopes = (): unknown[] => [all, chat, "a-key-from-the-environment", "x"].map((key) => keys.scopeOf(key));
    assert.deepEqual(scopes(), ["all", "chat", "all", null]);
    // As earlier versions wrote it.
    await writeFile(keys.path, (await readFile(keys.path, "utf8")).replace(/\s*"scope": "all",/, ""));
    assert.deepEqual(scopes(), ["all", "chat", "all", null]);
  });

  it("are read again after an edit in place that leaves size and time as they were", async (t) => {
    const keys = await open(t);
    const key = await keys.create("laptop");
    assert.ok(keys.accepts(key));
    const before = await stat(keys.path);
    await writeFile(keys.path, (await readFile(keys.path, "utf8")).replace(hashOf(key), hashOf("another")));
    await utimes(keys.path, before.atime, before.mtime);
    assert.deepEqual([keys.accepts(key), keys.accepts("another")], [false, true]);
  });

  it("expire, and are needed all the same", async (t) => {
    const keys = await open(t);
    const key = await keys.create("short", new Date(keys.now + day).toISOString());
    assert.ok(keys.accepts(key));
    keys.now += day;
    assert.deepEqual([keys.areRequired(), keys.accepts(key)], [true, false]);
  });

  it("have one more in GATEWAY_LICENSE_KEY", async (t) => {
    const keys = await open(t, "a-key-from-the-environment");
    assert.deepEqual([keys.areRequired(), keys.accepts("a-key-from-the-environment")], [true, true]);
    const other = await keys.create("file");
    assert.deepEqual(
      [keys.accepts("a-key-from-the-environment"), keys.accepts(other), keys.accepts("x")],
      [true, true, false],
    );
    assert.deepEqual(keys.warnings, []);
  });

  it("are warned of where GATEWAY_LICENSE_KEY is short, and refused where no client can send it", async (t) => {
    assert.match((await open(t, "short")).warnings.join(), /short and can be guessed/);
    for (const single of ["with blank in the middle", "schlüssel-schlüssel", "tab\there"]) {
      const error = startRefusal(join(await scratchFolder(t), "none"), single);
      assert.equal(error.code, "invalid_request");
      assert.ok(!error.message.includes(single));
    }
  });
});

describe("interface 5, Authentication: a damaged file of license keys", () => {
  const damages: readonly (readonly [what: string, damage: (path: string) => Promise<void>, problem: RegExp])[] = [
    ["is no JSON", (path) => writeFile(path, "{"), /it is no JSON/],
    ["is empty", (path) => writeFile(path, ""), /it is no JSON/],
    ["has no list", (path) => writeFile(path, '{"version":1}'), /`keys` is no list/],
    ["is gone", (path) => rm(path), /are gone/],
    [
      "is a folder",
      async (path) => {
        await rm(path);
        await mkdir(path);
      },
      /cannot be read \(EISDIR\)/,
    ],
  ];
  for (const [what, damage, problem] of damages) {
    it(`that ${what} leaves the keys as they were, with one warning`, async (t) => {
      const keys = await open(t);
      const key = await keys.create("laptop");
      assert.ok(keys.accepts(key));
      await damage(keys.path);
      for (let look = 0; look < 3; look++)
        assert.deepEqual([keys.areRequired(), keys.accepts(key), keys.accepts("x")], [true, true, false]);
      assert.equal(keys.warnings.length, 1, keys.warnings.join("\n"));
      assert.match(keys.warnings[0] ?? "", problem);
      assert.ok(!keys.warnings.join().includes(key));

      await rm(keys.path, { recursive: true, force: true });
      await writeFile(`${keys.path}.new`, renderKeyList([]));
      await rename(`${keys.path}.new`, keys.path);
      assert.deepEqual([keys.areRequired(), keys.accepts(key)], [true, false]);
    });
  }

  it("that appears while the gateway runs lets nobody in", async (t) => {
    const keys = await open(t);
    assert.equal(keys.areRequired(), false);
    await writeFile(keys.path, "half of a fi");
    assert.deepEqual([keys.areRequired(), keys.accepts("")], [true, false]);
  });

  it("that cannot be read while the gateway runs leaves the keys as they were", async (t) => {
    const folder = await scratchFolder(t);
    const keys = await open(t, undefined, folder);
    const key = await keys.create("laptop");
    assert.ok(keys.accepts(key));
    await rename(folder, `${folder}.away`);
    try {
      await writeFile(folder, "");
      assert.deepEqual([keys.areRequired(), keys.accepts(key), keys.accepts("x")], [true, true, false]);
    } finally {
      await rm(folder);
      await rename(`${folder}.away`, folder);
    }
    assert.ok(keys.accepts(key));
  });

  for (const [what, text, problem] of [
    ["no JSON", "{", "it is no JSON"],
    [
      "a key in the place of its hash",
      '{"version":1,"keys":[{"name":"a","hash":"mgw_SECRET","createdAt":"x"}]}',
      "keys[0]",
    ],
  ] as const) {
    it(`with ${what} stops a start, with its place and nothing of its content`, async (t) => {
      const path = join(await scratchFolder(t), keyFileName);
      await writeFile(path, text);
      const error = startRefusal(path);
      assert.equal(error.code, "invalid_request");
      for (const part of [path, problem]) assert.ok(error.message.includes(part), error.message);
      assert.ok(!error.message.includes("SECRET"));
    });
  }

  it("that is no file stops a start", async (t) => {
    const path = join(await scratchFolder(t), keyFileName);
    await mkdir(path);
    assert.match(startRefusal(path).message, /cannot be read \(EISDIR\)/);
  });

  it("that others could read is made its owner's alone, with a warning", async (t) => {
    const keys = await open(t);
    const key = await keys.create("laptop");
    await chmod(keys.path, 0o644);
    assert.ok(keys.accepts(key));
    assert.equal((await stat(keys.path)).mode & 0o777, 0o600);
    assert.match(keys.warnings.join(), /others could read or write/);
    assert.equal(keys.warnings.length, 1);
    assert.ok(keys.accepts(key));
    assert.equal(keys.warnings.length, 1);
  });

  it("is not written over by a new key", async (t) => {
    const path = join(await scratchFolder(t), keyFileName);
    await writeFile(path, "{");
    const error = await refusal(addKey(path, { name: "a", expiresAt: undefined, now: Date.now() }));
    assert.match(error.message, /cannot be understood/);
    assert.equal(await readFile(path, "utf8"), "{");
  });
});
