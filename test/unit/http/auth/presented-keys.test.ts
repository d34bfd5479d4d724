// Keys in addresses: what is the key, and what is left of the address.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { rewriteKeyedUrl, splitKeyedUrl } from "../../../../src/http/auth/presented.ts";

describe("interface 5, Authentication: a key in the address", () => {
  for (const [address, key, url] of [
    ["/k/KEY/v1/models", "KEY", "/v1/models"],
    ["/k/KEY/v1/models?a=/k/x&b", "KEY", "/v1/models?a=/k/x&b"],
    ["/k/KEY", "KEY", "/"],
    ["/k/KEY/", "KEY", "/"],
    ["/k/KEY?a=1", "KEY", "/?a=1"],
    ["/k/KEY/?a=1", "KEY", "/?a=1"],
    ["//k//KEY//v1", "KEY", "//v1"],
    ["/k/ONE/k/TWO/v1/models", "ONE", "/v1/models"],
    ["//k/ONE//k//TWO/k/THREE?a", "ONE", "/?a"],
    ["/k/ONE/k/", "ONE", "/k/"],
    ["/k/ONE/v1/k/TWO", "ONE", "/v1/k/TWO"],
    ["/k/a%2Fb%3Fc/status", "a/b?c", "/status"],
    ["/k/%zz/status", "%zz", "/status"],
    ["/k/KEY/v1/models/acme%2Fa:Q8_0", "KEY", "/v1/models/acme%2Fa:Q8_0"],
    ["/k/KEY/%zz%20", "KEY", "/%25zz%2520"],
    // Refused by the first hook, as the address of another server.
    ["http://gateway.example:80/k/KEY/status", null, "http://gateway.example:80/k/KEY/status"],
    ["/k", null, "/k"],
    ["/k/", null, "/k/"],
    ["/kk/KEY", null, "/kk/KEY"],
    ["/K/KEY", null, "/K/KEY"],
    ["/v1/k/KEY", null, "/v1/k/KEY"],
    ["/status?x=/k/KEY/y", null, "/status?x=/k/KEY/y"],
    ["/%", null, "/%25"],
    ["/a%20b?c=%", null, "/a%20b?c=%"],
    ["*", null, "*"],
    ["", null, "/"],
  ] as const) {
    it(`${JSON.stringify(address)} is ${JSON.stringify(url)}`, () =>
      assert.deepEqual(splitKeyedUrl(address), { key, url }));
  }

  it("is taken off in no time, however often it is there", () => {
    const { key, url } = splitKeyedUrl(`${"/k/x".repeat(100_000)}/k`);
    assert.deepEqual([key, url], ["x", "/k"]);
  });

  it("is gone from the request itself", () => {
    const request = { url: "/k/mgw_SECRET/status?a", originalUrl: "/k/mgw_SECRET/status?a" };
    assert.equal(rewriteKeyedUrl(request), "/status?a");
    assert.equal(request.originalUrl, "/status?a");
  });
});
