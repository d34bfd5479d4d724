// The catalog of errors, and what becomes of anything that is thrown.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type ErrorCode, errorCatalog } from "../../../src/core/error-catalog.ts";
import { GatewayError, systemCode, toGatewayError } from "../../../src/core/errors.ts";

const codes = Object.keys(errorCatalog) as ErrorCode[];

test("every code is a word with underscores, every reason CamelCase and its own", () => {
  for (const code of codes) {
    assert.match(code, /^[a-z]+(_[a-z]+)*$/);
    assert.match(errorCatalog[code].reason, /^([A-Z][a-z0-9]+)+$/);
  }
  const reasons = codes.map((code) => errorCatalog[code].reason);
  assert.deepEqual(reasons, [...new Set(reasons)]);
});

test("every error has a status that says whose it is, and tells what to do", () => {
  for (const code of codes) {
    const error = new GatewayError(code, "what happened");
    assert.ok(error.status >= 400 && error.status < 600, code);
    assert.match(error.hint, /^\S.*\.$/, code);
    assert.deepEqual(
      [error.name, error.message, error.code, error.reaction, error.reason],
      ["GatewayError", "what happened", code, errorCatalog[code].reaction, errorCatalog[code].reason],
    );
  }
});

test("what a person must mend is not tried again by itself", () => {
  for (const code of ["invalid_document", "hub_denied", "hub_not_found", "quant_ambiguous", "preset_foreign"] as const)
    assert.equal(errorCatalog[code].reaction, "stall");
  for (const code of ["engine_failed", "checksum_mismatch"] as const)
    assert.equal(errorCatalog[code].reaction, "retry");
  for (const code of ["hub_unreachable", "disk_full", "source_missing"] as const)
    assert.equal(errorCatalog[code].reaction, "wait");
});

test("anything thrown becomes an error of the catalog, with its cause", () => {
  const known = new GatewayError("disk_full", "no room", { retryAfterMs: 5 });
  assert.equal(toGatewayError(known), known);
  assert.equal(known.retryAfterMs, 5);
  const cause = new TypeError("x is undefined");
  const wrapped = toGatewayError(cause);
  assert.deepEqual([wrapped.code, wrapped.message, wrapped.cause], ["internal", "x is undefined", cause]);
  assert.equal(toGatewayError("text").message, "text");
  assert.equal(toGatewayError(undefined).code, "internal");
  assert.ok(!("cause" in new GatewayError("internal", "x")));
});

test("the code of a system error", () => {
  assert.equal(systemCode(Object.assign(new Error("x"), { code: "ENOSPC" })), "ENOSPC");
  assert.equal(systemCode(Object.assign(new Error("x"), { code: 5 })), undefined);
  assert.equal(systemCode(new Error("x")), undefined);
  assert.equal(systemCode({ code: "ENOENT" }), undefined);
});
