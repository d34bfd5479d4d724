// Networks in CIDR notation, as sockets name their clients.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createNetworks, networkOf } from "../../../src/settings/networks.ts";

function networks(...texts: readonly string[]): ReturnType<typeof createNetworks> {
  return createNetworks(texts.map((text) => networkOf(text) ?? assert.fail(text)));
}

test("IPv4: inside and outside, also as an IPv6 socket names it", () => {
  const found = networks("10.0.0.0/8", "192.168.1.7");
  for (const inside of ["10.0.0.0", "10.255.1.2", "::ffff:10.1.2.3", "::ffff:a01:203", "192.168.1.7"])
    assert.equal(found.has(inside), true, inside);
  for (const outside of ["11.0.0.1", "::ffff:11.0.0.1", "192.168.1.8", "::1", "::a01:203", "fd00::10.1.2.3"])
    assert.equal(found.has(outside), false, outside);
});

test("IPv6: whatever its spelling, and with the zone of a link-local address", () => {
  const found = networks("fd00:0:0::/8", "fe80::/10");
  for (const inside of ["fd12::1", "FD12:0:0:0:0:0:0:1", "fe80::1%eth0"]) assert.equal(found.has(inside), true, inside);
  for (const outside of ["2001:db8::1", "10.0.0.1", "fe00::1"]) assert.equal(found.has(outside), false, outside);
});

test("an IPv4 network that is written in IPv6 is the same one", () => {
  const found = networks("::ffff:10.0.0.0/104");
  assert.deepEqual([found.has("10.9.9.9"), found.has("::ffff:10.9.9.9"), found.has("11.0.0.1")], [true, true, false]);
});

test("all of IPv4 is no IPv6", () => {
  assert.deepEqual([networks("0.0.0.0/0").has("203.0.113.9"), networks("0.0.0.0/0").has("2001:db8::1")], [true, false]);
});

test("no network, and a connection that is gone: nobody", () => {
  assert.equal(networks().has("127.0.0.1"), false);
  for (const none of [undefined, "", "localhost", "10.0.0.1, 10.0.0.2"])
    assert.equal(networks("0.0.0.0/0").has(none), false, none);
});

test("what is no network is refused", () => {
  for (const text of [
    "",
    "10.0.0.0/33",
    "::/129",
    "10.0.0/8",
    "gateway.example",
    "fe80::1%eth0/64",
    "10.0.0.0/",
    "/8",
    "10.0.0.0/8/8",
    "10.0.0.0/-1",
  ])
    assert.equal(networkOf(text), null, text);
});
