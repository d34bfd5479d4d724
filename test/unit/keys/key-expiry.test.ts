// Which times a new key can be given to expire.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseExpiry } from "../../../src/keys/key-expiry.ts";

const now = Date.parse("2026-06-01T12:00:00Z");

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
