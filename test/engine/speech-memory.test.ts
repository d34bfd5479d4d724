// Sound that would take the machine's memory, on the real whisper-server.
import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryOf } from "../../src/engines/process/memory.ts";
import { codeOf, messageOf } from "../support/own-calls.ts";
import { flacSaying } from "../support/sounds.ts";
import { soundForm, spokenWords, startSpeechGateway } from "../support/speech.ts";
import { someSound } from "../support/whisper.ts";

const yaml = "speech: { transcription: { model: said.en } }";
const MiB = 1024 * 1024;

test("an engine that grows beyond its limit is ended; that upload is told so, and the others are answered", async (t) => {
  const limit = 160 * MiB;
  const gateway = await startSpeechGateway(t, { yaml, flags: ["--transcription-memory", String(limit)] });
  const ask = async (sound: Buffer): ReturnType<typeof gateway.json> =>
    gateway.json("/v1/audio/transcriptions", soundForm(sound));
  assert.equal((await ask(someSound())).status, 200);
  const { pid } = gateway.engine("transcription");
  let most = 0;
  const watching = (async () => {
    for (let bytes = await memoryOf(pid ?? 0); bytes !== null; bytes = await memoryOf(pid ?? 0)) {
      most = Math.max(most, bytes);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  })();
  // Ten hours: 2.3 GB, for samples of which there are none.
  const long = ask(flacSaying({ rate: 16_000, samples: 10 * 3_600 * 16_000 }));
  const others = await Promise.all([ask(someSound()), ask(someSound())]);
  const refused = await long;
  assert.deepEqual([refused.status, codeOf(refused)], [413, "sound_too_long"]);
  assert.match(messageOf(refused), /the engine took more than 167772160 bytes of memory/);
  for (const { body } of others) assert.equal((body["text"] as string).trim(), spokenWords);
  await watching;
  assert.ok(most > limit && most < 2_000 * MiB, `${Math.round(most / MiB)} MiB`);
  const { pid: now } = gateway.engine("transcription");
  assert.notEqual(now, pid);
  assert.equal(gateway.gateway.status().speech.transcription?.crashes, 0);
});
