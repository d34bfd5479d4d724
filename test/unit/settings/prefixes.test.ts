// Which prefixes go together: each family needs addresses that no other has.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { prefixProblem, servedPrefixes } from "../../../src/settings/prefixes.ts";

const [native, compat] = ["/alpha/api", "/beta/v1"] as const;

describe("prefixes", () => {
  it("are served with those that clients expect", () => {
    assert.deepEqual(servedPrefixes({ nativePrefix: native, compatPrefix: compat }), {
      own: [""],
      native: ["/alpha/api", "/api"],
      compat: ["/beta/v1", "/v1", "/alpha/v1"],
      llama: ["/beta", ""],
      front: ["", "/alpha", "/beta"],
    });
  });

  for (const [nativePrefix, compatPrefix] of [
    [native, compat],
    ["/api", "/v1"],
    ["/x", compat],
    ["/x/y/z", "/x/y/w"],
    [native, "/alpha/v1"],
    ["/API", "/V1"],
    ["/statuses", "/modelsx/v1"],
    ["/apis", "/v1beta"],
  ] as const) {
    it(`${nativePrefix} and ${compatPrefix} go together`, () =>
      assert.equal(prefixProblem({ nativePrefix, compatPrefix }), null));
  }

  for (const [nativePrefix, compatPrefix, problem] of [
    ["/same", "/same", "Ollama's API at /same would be at or below OpenAI's API at /same"],
    ["/v1", compat, "Ollama's API at /v1 would be at or below OpenAI's API at /v1"],
    [compat, compat, "Ollama's API at /beta/v1 would be at or below OpenAI's API at /beta/v1"],
    ["/alpha/v1", compat, "Ollama's API at /alpha/v1 would be at or below OpenAI's API at /alpha/v1"],
    [native, "/api", "Ollama's API at /api would be at or below OpenAI's API at /api"],
    [native, native, "Ollama's API at /alpha/api would be at or below OpenAI's API at /alpha/api"],
    [native, "/api/v1", "OpenAI's API at /api/v1 would be at or below Ollama's API at /api"],
    [native, "/alpha/api/v1", "OpenAI's API at /alpha/api/v1 would be at or below Ollama's API at /alpha/api"],
    ["/api/hf", compat, "Ollama's API at /api/hf would be at or below Ollama's API at /api"],
    ["/api/tags/x", compat, "Ollama's API at /api/tags/x would be at or below Ollama's API at /api"],
    [native, "/v1/models/x", "OpenAI's API at /v1/models/x would be at or below OpenAI's API at /v1"],
    ["/x/api", "/x", "Ollama's API at /x/api would be at or below OpenAI's API at /x"],
    ["/status", compat, "Ollama's API at /status would be at or below the gateway's own API at /status"],
    ["/livez/x", compat, "Ollama's API at /livez/x would be at or below the gateway's own API at /livez"],
    [native, "/k/v1", "OpenAI's API at /k/v1 would be at or below the gateway's own API at /k"],
    [native, "/models", "OpenAI's API at /models would be at or below llama.cpp's API at /models"],
    ["/beta/props/x", compat, "Ollama's API at /beta/props/x would be at or below llama.cpp's API at /beta/props"],
  ] as const) {
    it(`${nativePrefix} and ${compatPrefix} do not`, () =>
      assert.equal(prefixProblem({ nativePrefix, compatPrefix }), problem));
  }
});
