// Which addresses of workers are one, and which belong to strangers.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  foldWorker,
  isPublicLiteral,
  isTrustedAddress,
  parseWorker,
  workerProblem,
} from "../../../src/core/worker-address.ts";

test("an address is taken apart", () => {
  assert.deepEqual(parseWorker("gpu-1.local:50052"), { host: "gpu-1.local", port: 50_052 });
  assert.deepEqual(parseWorker("10.0.0.1:1"), { host: "10.0.0.1", port: 1 });
  assert.deepEqual(parseWorker("0x:1"), null);
  assert.deepEqual(parseWorker("0xbeef.local:1")?.host, "0xbeef.local");
});

const refused: readonly (readonly [string, RegExp])[] = [
  ["gpu", /not of the form HOST:PORT/],
  [":1", /not of the form HOST:PORT/],
  ["gpu:", /not of the form HOST:PORT/],
  ["gpu:0", /not of the form HOST:PORT/],
  ["gpu:65536", /not of the form HOST:PORT/],
  ["127.0.0.1:050061", /not of the form HOST:PORT/],
  ["[fd00::1]:50052", /not of the form HOST:PORT, with an IPv4 address or a host's name/],
  ["fd00::1:50052", /not of the form HOST:PORT/],
  ["a b:1", /a b is no host's name/],
  ["...:50061", /\.\.\. is no host's name/],
  ["-:1", /- is no host's name/],
  ["a..b:1", /no host's name/],
  ["-a.b:1", /no host's name/],
  ["a-.b:1", /no host's name/],
  [`${"a".repeat(64)}:1`, /no host's name/],
  // The system takes all of these for addresses.
  ["127.1:50061", /127\.1 is no IPv4 address/],
  ["0x7f.1:50061", /no IPv4 address/],
  ["2130706433:50061", /no IPv4 address/],
  ["0x7f000001:50061", /no IPv4 address/],
  ["127.0.0.01:50061", /no IPv4 address/],
  ["256.0.0.1:50061", /no IPv4 address/],
  ["0.0.0.0:50052", /no address of a single machine/],
  ["224.0.0.1:50052", /no address of a single machine/],
  ["255.255.255.255:50052", /no address of a single machine/],
];

test("what is no address is refused with the reason", () => {
  for (const [text, problem] of refused) {
    assert.match(workerProblem(text) ?? "", problem, text);
    assert.equal(parseWorker(text), null, text);
  }
});

test("two spellings of one worker are one", () => {
  assert.equal(foldWorker("GPU.local:50052"), foldWorker("gpu.local:50052"));
  assert.notEqual(foldWorker("gpu.local:50052"), foldWorker("gpu.local:50053"));
});

test("private, loopback, link-local and shared ranges are trusted to their very ends", () => {
  const trusted =
    "10.0.0.0 10.255.255.255 127.0.0.1 127.255.0.1 172.16.0.0 172.31.255.255 192.168.0.1 169.254.9.9 100.64.0.0 100.127.255.255";
  const strange =
    "9.255.255.255 11.0.0.0 172.15.0.1 172.32.0.1 192.167.0.1 192.169.0.1 169.253.0.1 100.63.0.1 100.128.0.1 8.8.8.8 0.0.0.0";
  assert.deepEqual(
    trusted.split(" ").filter((address) => !isTrustedAddress(address)),
    [],
  );
  assert.deepEqual(strange.split(" ").filter(isTrustedAddress), []);
});

test("a name is judged when it is resolved, an address at once", () => {
  assert.equal(isPublicLiteral("8.8.8.8:50052"), true);
  for (const text of ["192.168.1.20:50052", "gpu:50052", "gpu.local:50052", "nonsense"])
    assert.equal(isPublicLiteral(text), false, text);
});
