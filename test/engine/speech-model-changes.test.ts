// Another transcription model in the document.
import assert from "node:assert/strict";
import { test } from "node:test";
import { heard, otherWords, type SpeechGateway, spokenWords, startSpeechGateway } from "../support/speech.ts";

const yaml = "speech: { transcription: { model: said.en } }";

async function changeTo(gateway: SpeechGateway, model: string, query = ""): Promise<number> {
  const { status } = await gateway.json(`/api/desired${query}`, {
    method: "PATCH",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ speech: { transcription: { model } } }),
  });
  return status;
}

function conditionOf(gateway: SpeechGateway): string {
  const found = gateway.gateway.status().conditions.find(({ type }) => type === "SpeechReady");
  return `${found?.status} ${found?.reason} ${found?.message}`;
}

test("requests wait for a model that is being pulled, and are told where there is none", async (t) => {
  const gateway = await startSpeechGateway(t, { yaml });
  const hold = gateway.hub.throttle("ggml-said.en.bin", 100);
  const first = heard(gateway);
  await hold.reached;
  await gateway.until(
    "a request that waits for a pull is counted",
    ({ speech }) => speech.transcription?.inFlight === 1,
  );
  hold.release();
  assert.equal(await first, spokenWords);

  assert.equal(await changeTo(gateway, "nothere.en"), 200);
  await gateway.until("it is said", () => conditionOf(gateway).startsWith("False ModelMissing "));
  assert.equal(await heard(gateway), "404 transcription_model_not_found");

  const next = gateway.hub.throttle("ggml-base.en.bin", 100);
  assert.equal(await changeTo(gateway, "base.en"), 200);
  await next.reached;
  assert.match(conditionOf(gateway), /^False ModelMissing /);
  const late = heard(gateway);
  next.release();
  assert.equal(await late, otherWords);
});

test("whoever asks after a change was acknowledged never gets the text of the model before", async (t) => {
  const gateway = await startSpeechGateway(t, { yaml });
  assert.equal(await heard(gateway), spokenWords);
  let isAcknowledged = false;
  const early: string[] = [];
  const asking = Promise.all(
    [1, 2].map(async () => {
      while (!isAcknowledged) early.push(await heard(gateway));
    }),
  );
  assert.equal(await changeTo(gateway, "base.en", "?wait=true"), 200);
  const late = await Promise.all(Array.from({ length: 4 }, () => heard(gateway)));
  isAcknowledged = true;
  await asking;
  assert.deepEqual([...new Set(late)], [otherWords]);
  assert.ok(
    early.every((text) => text === spokenWords || text === otherWords),
    early.join(),
  );
  // To and fro: both are here now.
  for (const [model, words] of [
    ["said.en", spokenWords],
    ["base.en", otherWords],
  ] as const) {
    assert.equal(await changeTo(gateway, model), 200);
    assert.equal(await heard(gateway), words);
  }
});
