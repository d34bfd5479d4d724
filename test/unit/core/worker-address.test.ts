// Which addresses of workers are one, and which belong to strangers.
import assert from "node:assert/strict";
import { test } from "node:test";
import { foldWorker, isPublicLiteral, isTrustedAddress, parseWorker } from "../../../src/core/worker-address.ts";

test("an address is taken apart", () => {
  assert.deepEqual(parseWorker("gpu-1.local:50052"), { host: "gpu-1.local", port: 50_052 });
  assert.deepEqual(parseWorker("[fd00::1]:1"), { host: "fd00::1", port: 1 });
  for (const text of ["gpu", "gpu:0", "gpu:65536", "fd00::1:50052", "a b:1", ":1"])
    assert.equal(parseWorker(text), null);
});

test("two spellings of one worker are one", () => {
  assert.equal(foldWorker("GPU.local:050052"), foldWorker("gpu.local:50052"));
  assert.notEqual(foldWorker("gpu.local:50052"), foldWorker("gpu.local:50053"));
});

test("private, loopback, link-local, unique local and shared ranges are trusted to their very ends", () => {
  const trusted =
    "10.0.0.0 10.255.255.255 127.0.0.1 127.255.0.1 172.16.0.0 172.31.255.255 192.168.0.1 169.254.9.9 100.64.0.0 100.127.255.255 ::1 fe80::1 febf::1 fc00::1 fdff::1 ::ffff:10.0.0.1";
  const strange =
    "9.255.255.255 11.0.0.0 172.15.0.1 172.32.0.1 192.167.0.1 192.169.0.1 169.253.0.1 100.63.0.1 100.128.0.1 8.8.8.8 0.0.0.0 2001:db8::1 fec0::1 fb00::1 ::ffff:8.8.8.8 ::";
  assert.deepEqual(
    trusted.split(" ").filter((address) => !isTrustedAddress(address)),
    [],
  );
  assert.deepEqual(strange.split(" ").filter(isTrustedAddress), []);
});

test("a name is judged when it is resolved, an address at once", () => {
  assert.equal(isPublicLiteral("8.8.8.8:50052"), true);
  assert.equal(isPublicLiteral("[2001:db8::1]:50052"), true);
  for (const text of ["192.168.1.20:50052", "[fd00::1]:50052", "gpu:50052", "gpu.local:50052", "nonsense"])
    assert.equal(isPublicLiteral(text), false, text);
});
