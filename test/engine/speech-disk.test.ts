// What speech takes on the disk: told, collected once nobody asks for it any more, and deleted by name.
import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { createGatewayClient } from "model-gateway/client";
import { collectedSchema, diskSchema } from "../../schemas/disk.ts";
import { codeOf } from "../support/own-calls.ts";
import { postWith } from "../support/requests.ts";
import { assertFits } from "../support/schemas.ts";
import {
  highVoice,
  lowVoice,
  otherWords,
  rates,
  soundForm,
  speechDocument,
  startSpeechGateway,
} from "../support/speech.ts";
import { someSound } from "../support/whisper.ts";

test("voices and transcription models: what they take is told, and what nobody asks for goes", async (t) => {
  const gateway = await startSpeechGateway(t);
  const client = createGatewayClient({ baseUrl: gateway.url });
  const notes = async (): Promise<Record<string, string>> => {
    const report = await client.disk.report();
    assertFits(diskSchema, report, "the report");
    assert.equal(report.totals.bytes, report.totals.modelBytes + report.totals.speechBytes);
    return Object.fromEntries(
      report.speech.map((each) => [
        each.name,
        (["present", "desired", "ours", "running"] as const).filter((key) => each[key]).join(" "),
      ]),
    );
  };
  const copies = async (): Promise<string[]> => {
    const names = await readdir(join(gateway.stateDir, "engines", "sherpa-voices"));
    return names.map((name) => name.replace(/-[0-9a-f]{12}$/, ""));
  };
  await gateway.say(lowVoice);
  await gateway.say(highVoice);
  assert.deepEqual(await copies(), [highVoice]);
  await gateway.until("it is pulled", ({ running }) => running.length === 0);
  await gateway.writeConfig(`version: 1\n${speechDocument.replace("said.en", "base.en")}\n`);
  await gateway.until("the other one", ({ speech }) => speech.transcription?.choice === "ggml-base.en.bin");
  const { body } = await gateway.json("/v1/audio/transcriptions", soundForm(someSound()));
  assert.equal((body["text"] as string).trim(), otherWords);
  assert.deepEqual(await notes(), {
    "ggml-base.en.bin": "present desired ours running",
    "ggml-said.en.bin": "present ours",
    [highVoice]: "present desired ours running",
    [lowVoice]: "present ours",
  });

  await t.test("collected: what the document does not name", async () => {
    const would = await client.disk.collect();
    assertFits(collectedSchema, would, "what would go");
    assert.deepEqual(
      would.items.map(({ kind, reason }) => `${kind} ${reason}`),
      ["speech SpeechUnused", "speech SpeechUnused"],
    );
    const before = (await client.disk.report()).totals;
    assert.equal(
      before.collectableBytes,
      would.items.reduce((sum, { bytes }) => sum + bytes, 0),
    );
    const done = await client.disk.collect({ dryRun: false });
    assert.equal(done.freedBytes, before.collectableBytes);
    assert.deepEqual(done.skipped, []);
    assert.deepEqual(Object.keys(await notes()).toSorted(), [highVoice, "ggml-base.en.bin"]);
    assert.deepEqual((await gateway.json("/api/tts/voices/cached")).body, { voices: [highVoice] });
    assert.deepEqual((await gateway.json("/api/stt/models/cached")).body, { models: ["ggml-base.en.bin"] });
    assert.deepEqual((await client.disk.collect()).items, []);
    assert.equal((await gateway.say(highVoice)).sampleRate, rates[highVoice]);
    assert.equal((await gateway.say(lowVoice)).sampleRate, rates[lowVoice]);
  });
  await t.test("a voice is no model", async () => {
    const none = await gateway.json("/api/remove-model", postWith({ model: highVoice }));
    assert.deepEqual([none.status, codeOf(none)], [404, "model_not_found"]);
  });
});
