// Which hosts and origins may talk to a gateway.
import assert from "node:assert/strict";
import { test } from "node:test";
import { isAllowedHost, isAllowedOrigin, isLoopback } from "../../../../src/http/auth/guards.ts";

const further = ["gateway.lan", "other.lan:9000"];

const hosts: readonly (readonly [host: string | undefined, allowed: boolean])[] = [
  ["localhost", true],
  ["LOCALHOST:8484", true],
  ["127.0.0.1:8484", true],
  ["127.1.2.3", true],
  ["127.999.1.1", false],
  ["[0:0:0:0:0:0:0:1]:8484", true],
  ["[::ffff:127.0.0.1]", true],
  ["[::ffff:7f00:1]:80", true],
  ["[::1]:8484", true],
  ["[::1]", true],
  ["app.localhost:8484", true],
  ["gateway.lan", true],
  ["Gateway.LAN:8484", true],
  ["other.lan:9000", true],
  ["other.lan", false],
  ["other.lan:9001", false],
  [undefined, false],
  ["", false],
  ["evil.example", false],
  ["127.0.0.1.evil.example", false],
  ["localhost.evil.example", false],
  ["evil-localhost", false],
  ["evil.example:127.0.0.1", false],
  ["0.0.0.0", false],
  ["10.0.0.1", false],
  ["[::ffff:1.2.3.4]", false],
  ["127.0.0.1@evil.example", false],
];

for (const [host, allowed] of hosts)
  test(`host ${host ?? "(none)"} is ${allowed ? "let in" : "refused"}`, () =>
    assert.equal(isAllowedHost(host, further), allowed));

const origins: readonly (readonly [origin: string | undefined, allowed: boolean])[] = [
  [undefined, true],
  ["http://localhost:3000", true],
  ["http://127.0.0.1:8484", true],
  ["http://[::1]:8484", true],
  ["https://gateway.lan", true],
  ["vscode-webview://0abc", true],
  ["tauri://localhost", true],
  ["app://obsidian.md", true],
  ["null", false],
  ["", false],
  ["https://evil.example", false],
  ["http://localhost.evil.example", false],
  ["https://127.0.0.1.evil.example:8484", false],
  ["http://localhost@evil.example", false],
  ["chrome-extension://abcdef", false],
  ["https://chat.example", true],
  ["http://chat.example", false],
  ["https://chat.example:8443", false],
  ["https://chat.example.evil.example", false],
  ["https://CHAT.example", false],
];

for (const [origin, allowed] of origins)
  test(`origin ${origin ?? "(none)"} is ${allowed ? "let in" : "refused"}`, () =>
    assert.equal(
      isAllowedOrigin(origin, {
        host: "127.0.0.1:8484",
        allowedHosts: further,
        corsOrigins: ["https://chat.example"],
      }),
      allowed,
    ));

const ownPages: readonly (readonly [origin: string, host: string | undefined, allowed: boolean])[] = [
  ["http://10.1.2.3:8484", "10.1.2.3:8484", true],
  ["http://box.lan:8484", "BOX.lan:8484", true],
  ["http://box.lan", "box.lan", true],
  ["http://box.lan", "box.lan:80", true],
  ["https://box.lan", "box.lan:443", true],
  ["https://box.lan", "box.lan", true],
  ["http://box.lan:8485", "box.lan:8484", false],
  ["http://evil.example", "box.lan:8484", false],
  ["http://evil.example", "box.lan:8484@evil.example", false],
  ["http://box.lan", undefined, false],
  ["http://box.lan", "", false],
  ["http://box.lan", "[", false],
  ["null", "null", false],
  ["chrome-extension://box", "box", false],
];

for (const [origin, host, allowed] of ownPages)
  test(`a page of ${origin} is ${allowed ? "" : "not "}one of the gateway at ${host ?? "(none)"}`, () =>
    assert.equal(isAllowedOrigin(origin, { host, allowedHosts: [], corsOrigins: [] }), allowed));

const loopback =
  "127.0.0.1 127.9.9.9 127.255.255.255 localhost LOCALHOST LocalHost " +
  "::1 [::1] 0:0:0:0:0:0:0:1 [0000:0000::0001] ::0:1 ::ffff:127.0.0.1 ::FFFF:127.1.2.3 [::ffff:7f00:1] 0:0:0:0:0:ffff:7fff:ffff";

const elsewhere =
  " 0.0.0.0 10.0.0.1 localhost.evil.example localhost. 127.0.0.1.evil 127.999.1.1 127.0.0 " +
  ":: ::2 ::1:1 1::1 ::ffff:1.2.3.4 ::ffff:10.127.0.0 ::127.0.0.1 ::ffff:7f:1 ::ffff:7f00 " +
  "[] [ ::1] ::1%lo [::1 64:ff9b::7f00:1 fe80::1 ::ffff:0:127.0.0.1 1 : ....";

test("addresses that only this machine reaches", () => {
  for (const address of loopback.split(" ")) assert.ok(isLoopback(address), address);
  for (const address of elsewhere.split(" ")) assert.ok(!isLoopback(address), address);
});
