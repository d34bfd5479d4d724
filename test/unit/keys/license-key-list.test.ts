// What may stand in license-keys.json, and which times can be asked for.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  isKeyName,
  isLive,
  type KeyEntry,
  parseExpiry,
  parseKeyList,
  renderKeyList,
} from "../../../src/keys/key-list.ts";

const hash = "ab".repeat(32);
const entry = { name: "laptop", hash, createdAt: "2026-01-02T03:04:05.000Z" };
const now = Date.parse("2026-06-01T12:00:00Z");

function problemOf(value: unknown): string {
  const parsed = parseKeyList(typeof value === "string" ? value : JSON.stringify(value));
  return typeof parsed === "string" ? parsed : "none";
}

describe("interface 5, Authentication: the list of license keys", () => {
  it("reads what it writes", () => {
    const keys: KeyEntry[] = [entry, { ...entry, name: "ci", scope: "chat", expiresAt: "2027-01-01T00:00:00.000Z" }];
    assert.deepEqual(parseKeyList(renderKeyList(keys)), keys);
    assert.deepEqual(parseKeyList(renderKeyList([])), []);
  });

  const list = (...keys: unknown[]): object => ({ version: 1, keys });
  for (const [value, problem] of [
    ["", "it is no JSON"],
    ["{", "it is no JSON"],
    ["[]", "it is no JSON object"],
    [{ keys: [] }, "`version` is not 1"],
    [{ version: 2, keys: [] }, "`version` is not 1"],
    [{ version: 1 }, "`keys` is no list"],
    [list("mgw_SECRET"), "keys[0]: it is no object"],
    [list({ ...entry, hash: "mgw_SECRET" }), "keys[0]: `hash` is no SHA-256 in lower-case hex"],
    [list({ ...entry, hash: hash.toUpperCase() }), "keys[0]: `hash` is no SHA-256 in lower-case hex"],
    [list(entry, { ...entry, name: "" }), "keys[1]: `name` is no name"],
    [list({ ...entry, createdAt: "yesterday" }), "keys[0]: `createdAt` is no time"],
    [list({ ...entry, expiresAt: 5 }), "keys[0]: `expiresAt` is no time"],
    [list({ ...entry, expiresAt: "2026-13-01T00:00:00Z" }), "keys[0]: `expiresAt` is no time"],
    [
      list({ ...entry, expires: "2027-01-01" }),
      "keys[0]: it has a field other than name, hash, scope, createdAt and expiresAt",
    ],
    [list({ ...entry, scope: "read" }), "keys[0]: `scope` is neither all nor chat"],
    [list(entry, { ...entry }), "keys[1]: another key has the same name"],
  ] as const) {
    it(`does not take ${JSON.stringify(value).slice(0, 60)}: ${problem}`, () => {
      assert.equal(problemOf(value), problem);
      assert.ok(!problemOf(value).includes("SECRET"));
    });
  }

  it("has names that are plain", () => {
    for (const name of ["a", "ci-2", "Anna@laptop", "x".repeat(64)]) assert.ok(isKeyName(name), name);
    for (const name of ["", "-x", "a b", "a/b", "ä", "x".repeat(65), "a\n", "__proto__"])
      assert.ok(!isKeyName(name), name);
  });

  it("knows when a key stops to count", () => {
    assert.ok(isLive(entry, now));
    const expiresAt = new Date(now).toISOString();
    assert.deepEqual([isLive({ ...entry, expiresAt }, now - 1), isLive({ ...entry, expiresAt }, now)], [true, false]);
  });
});

describe("interface 5, Authentication: when a key is to expire", () => {
  for (const [text, expected] of [
    ["12h", "2026-06-02T00:00:00.000Z"],
    ["30d", "2026-07-01T12:00:00.000Z"],
    ["4w", "2026-06-29T12:00:00.000Z"],
    ["2027-01-01", "2027-01-01T00:00:00.000Z"],
    ["2028-02-29", "2028-02-29T00:00:00.000Z"],
    ["2027-02-29", null],
    ["2027-13-01", null],
    ["2026-06-01", null],
    ["2020-01-01", null],
    ["0d", null],
    ["-1d", null],
    ["1.5d", null],
    ["30", null],
    ["30m", null],
    ["9999999d", null],
    ["999999w", null],
    ["soon", null],
    ["", null],
    ["2027-01-01T00:00:00Z", null],
  ] as const) {
    it(`${JSON.stringify(text)} is ${expected ?? "refused"}`, () => assert.equal(parseExpiry(text, now), expected));
  }
});
