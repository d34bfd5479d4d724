// What browsers are told about pages of other origins.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { corsHeaders, preflightHeaders } from "../../../../src/http/auth/cors.ts";

const page = "https://chat.example";
const preflight = { origin: page, "access-control-request-method": "POST" };

describe("interface 5, Authentication: pages of other origins", () => {
  it("are told nothing while there is no allow-list", () => {
    assert.deepEqual(corsHeaders(page, []), {});
    assert.equal(preflightHeaders("OPTIONS", preflight, []), null);
  });

  it("are told their own origin, by no wildcard and without credentials", () => {
    assert.deepEqual(corsHeaders(page, ["https://a.example", page]), {
      vary: "Origin",
      "access-control-allow-origin": page,
      "access-control-expose-headers": "x-context-size, x-should-retry, etag, retry-after",
    });
    for (const origin of [undefined, "https://evil.example", "null", "*"])
      assert.deepEqual(corsHeaders(origin, [page]), { vary: "Origin" });
  });

  it("may ask before with any header that is one", () => {
    const headers = { ...preflight, "access-control-request-headers": "authorization, x-stainless-os" };
    assert.deepEqual(preflightHeaders("OPTIONS", headers, [page]), {
      "access-control-allow-methods": "GET, HEAD, POST, PUT, PATCH, DELETE",
      "access-control-allow-headers": "authorization, x-stainless-os",
      "access-control-max-age": "600",
      vary: "Origin, Access-Control-Request-Headers",
    });
    const odd = { ...preflight, "access-control-request-headers": "a\r\nb: c" };
    assert.equal(preflightHeaders("OPTIONS", odd, [page])?.["access-control-allow-headers"], undefined);
  });

  it("may reach into a private network, where they ask", () => {
    const headers = { ...preflight, "access-control-request-private-network": "true" };
    assert.equal(preflightHeaders("OPTIONS", headers, [page])?.["access-control-allow-private-network"], "true");
  });

  it("have no preflight that is another method, names no method, or is another's", () => {
    assert.equal(preflightHeaders("GET", preflight, [page]), null);
    assert.equal(preflightHeaders("OPTIONS", { origin: page }, [page]), null);
    assert.equal(preflightHeaders("OPTIONS", { ...preflight, origin: "https://evil.example" }, [page]), null);
  });
});
