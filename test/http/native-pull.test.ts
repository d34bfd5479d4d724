// A pull of the native family whose client leaves in its midst.
import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { test } from "node:test";
import { startTestGateway } from "../support/gateway.ts";
import { startLoopbackHub } from "../support/loopback-hub.ts";
import { modelBytes, talkingModel } from "../support/models.ts";

test("interface 4, Native routes: a pull whose client leaves ends, and leaves nothing behind", async (t) => {
  const hub = await startLoopbackHub(t);
  const bytes = modelBytes(talkingModel("left"));
  hub.addRepo("acme/left", { files: { "left-Q8_0.gguf": bytes } });
  const hold = hub.throttle("left-Q8_0.gguf", 200_000);
  const gateway = await startTestGateway(t, { yaml: "version: 1\n", environment: { HF_ENDPOINT: hub.endpoint } });
  await gateway.converged();
  const leaving = new AbortController();
  const response = await fetch(`${gateway.url}/alpha/api/pull`, {
    method: "POST",
    body: JSON.stringify({ name: "acme/left:Q8_0" }),
    signal: leaving.signal,
  });
  assert.deepEqual([response.status, response.headers.get("content-type")], [200, "application/x-ndjson"]);
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (!text.includes('"digest"')) text += (await reader?.read())?.value ?? "";
  const [first, second] = text.split("\n").map((line) => JSON.parse(line || "null") as Record<string, unknown> | null);
  assert.deepEqual(first, { status: "pulling manifest" });
  assert.match(String(second?.["status"]), /^pulling [0-9a-f]{12}$/);
  assert.deepEqual([second?.["digest"], second?.["total"]], [`sha256:${digestIn(second)}`, bytes.length]);
  await hold.reached;
  leaving.abort();
  await hold.left;
  await gateway.converged();
  assert.deepEqual((await gateway.json("/api/tags")).body, { models: [] });
  const files = await readdir(gateway.cacheDir, { recursive: true });
  assert.deepEqual(
    files.filter((name) => /incomplete|\.gguf$|blobs\//.test(name)),
    [],
  );
});

function digestIn(record: Record<string, unknown> | null | undefined): string {
  return /[0-9a-f]{64}/.exec(String(record?.["digest"]))?.[0] ?? "";
}
