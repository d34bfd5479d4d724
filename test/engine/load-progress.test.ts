// How far a load is, as the router tells it, for whoever follows the events.
import assert from "node:assert/strict";
import { test } from "node:test";
import { makeTalkerFolders } from "../support/folders.ts";
import { startTestGateway } from "../support/gateway.ts";
import { chatWith } from "../support/requests.ts";

interface ModelEvent {
  readonly model: string;
  readonly data: { readonly status?: string; readonly progress?: { readonly value: number } } | null;
}

test("each load's progress comes on the event stream, from its beginning to its end, and then that it is loaded", async (t) => {
  const folders = await makeTalkerFolders(t);
  const gateway = await startTestGateway(t, { folders, yaml: "version: 1\n" });
  await gateway.converged();
  const following = new AbortController();
  const response = await fetch(`${gateway.url}/api/events`, { signal: following.signal });
  const asked = gateway.json("/v1/models/load", chatWith("acme/talker:Q8_0"));
  const seen: ModelEvent[] = [];
  let rest = "";
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    const frames = (rest + decoder.decode(chunk as Uint8Array, { stream: true })).split("\n\n");
    rest = frames.pop() ?? "";
    for (const frame of frames) {
      if (!frame.includes("\nevent: model\n")) continue;
      seen.push(JSON.parse(/^data: (.*)$/m.exec(frame)?.[1] ?? "null") as ModelEvent);
    }
    if (seen.some(({ data }) => data?.status === "loaded")) break;
  }
  following.abort();
  await asked;
  const values = seen.flatMap(({ data }) => data?.progress?.value ?? []);
  assert.ok(seen.every(({ model }) => model === "acme/talker:Q8_0"));
  assert.deepEqual([values[0], values.at(-1)], [0, 1]);
  assert.deepEqual(
    values,
    values.toSorted((a, b) => a - b),
  );
});
