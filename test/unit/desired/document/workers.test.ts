// Which rosters of RPC workers a document may have.
import assert from "node:assert/strict";
import { test } from "node:test";
import { validateDocument } from "../../../../src/desired/document/validate.ts";

function problemsOf(workers: readonly string[]): string[] {
  const validation = validateDocument({ version: 1, rpc: { workers } });
  return validation.ok ? [] : validation.problems.map(({ path, message }) => `${path.join(".")}: ${message}`);
}

test("what the engine could not reach, or would be one worker under several names, is told with its reason", () =>
  assert.deepEqual(problemsOf(["gpu:1", "[fd00::1]:1", "127.1:1", "8.8.8.8:1"]), [
    `rpc.workers.1: "[fd00::1]:1" is not of the form HOST:PORT, with an IPv4 address or a host's name`,
    'rpc.workers.2: "127.1:1": 127.1 is no IPv4 address',
    "rpc.workers.3: 8.8.8.8:1 is a public address, and the protocol has neither password nor encryption; allowPublicWorkers: true permits it",
  ]));

test("64 workers are a roster, and no more", () => {
  const many = Array.from({ length: 64 }, (_, index) => `gpu:${index + 1}`);
  assert.deepEqual(problemsOf(many), []);
  assert.deepEqual(problemsOf([...many, "gpu:65"]), ["rpc.workers: must NOT have more than 64 items"]);
});
