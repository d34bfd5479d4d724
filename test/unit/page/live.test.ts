// The stream of events, beside the status that is read.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { GatewayClient, GatewayEvent, StatusBody } from "../../../src/client/index.ts";
import { follow } from "../../../src/page/live.ts";

const statusOf = (inFlight: StatusBody["inFlight"]) =>
  ({ conditions: [], generation: 1, running: [], waiting: [], inFlight }) as unknown as StatusBody;
const requestsOver: GatewayEvent = {
  id: "e-1",
  type: "requests",
  data: { at: "2027-03-01T12:00:00.000Z", inFlight: {}, waiting: [], used: ["m"] },
};

test("a status that was read while an event came does not undo what the event said", async () => {
  const over = new AbortController();
  let eventShown: (() => void) | undefined;
  const old = new Promise<StatusBody>((resolve) => {
    eventShown = () => resolve(statusOf({ m: 1 }));
  });
  const answers = [old, Promise.resolve(statusOf({}))];
  const client = {
    status: () => answers.shift() ?? assert.fail("a third look"),
    desired: { get: () => Promise.resolve({ generation: 1 }) },
    events: async function* () {
      yield requestsOver;
      await new Promise((resolve) => over.signal.addEventListener("abort", resolve));
    },
  } as unknown as GatewayClient;
  const shown: number[] = [];
  await follow({
    client,
    signal: over.signal,
    onChange: ({ status, lastUsed }) => {
      if (lastUsed.has("m")) eventShown?.();
      if (status) shown.push(Object.keys(status.inFlight).length);
      if (shown.includes(1) && shown.at(-1) === 0) over.abort();
    },
    onRefused: assert.fail,
  });
  // The old status, the document that it calls for, the new status.
  assert.deepEqual(shown, [1, 1, 0]);
});
