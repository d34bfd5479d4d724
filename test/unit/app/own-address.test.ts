import assert from "node:assert/strict";
import { test } from "node:test";
import { isOwnAddress } from "../../../src/app/own-address.ts";

test("a gateway knows its own address as a mirror", () => {
  const own = { name: "Gateway-0", port: 8484 };
  for (const [address, expected] of [
    ["http://gateway-0.replicas:8484/hub", true],
    ["http://GATEWAY-0:8484/hub", true],
    ["http://127.0.0.1:8484/hub", true],
    ["http://[::1]:8484/hub", true],
    ["http://gateway-0.replicas:8485/hub", false],
    ["http://gateway-0.replicas/hub", false],
    ["http://gateway-01.replicas:8484/hub", false],
    ["http://gateway-1.replicas:8484/hub", false],
    ["http://10.0.0.11:8484/hub", false],
  ] as const)
    assert.equal(isOwnAddress(address, own), expected, address);
});
