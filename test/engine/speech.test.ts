// Speech through the gateway on the real engines: what the document says becomes so, and requests change it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { postWith } from "../support/own-calls.ts";
import {
  highVoice,
  lowVoice,
  rates,
  soundForm,
  spokenWords,
  startSpeechGateway,
} from "../support/speech.ts";
import { someSound } from "../support/whisper.ts";

test("interface 4, Transcription: an upload becomes text, by an engine that starts when it is asked for", async (t) => {
  const gateway = await startSpeechGateway(t);
  await gateway.until("the model is there", ({ conditions }) =>
    conditions.some(({ type, status, reason }) => type === "SpeechReady" && status === "True" && reason === "Idle"),
  );
  assert.equal(gateway.engine("transcription").phase, "stopped");
  const began = performance.now();
  const answer = await gateway.json("/beta/v1/audio/transcriptions", soundForm(someSound(), { model: "whisper-1" }));
  t.diagnostic(`first transcription: ${Math.round(performance.now() - began)} ms`);
  assert.deepEqual([answer.status, (answer.body["text"] as string).trim()], [200, spokenWords]);
  const { pid } = gateway.engine("transcription");
  const again = performance.now();
  const second = await gateway.json("/v1/audio/transcriptions", soundForm(someSound()));
  t.diagnostic(`second transcription: ${Math.round(performance.now() - again)} ms`);
  assert.equal((second.body["text"] as string).trim(), spokenWords);
  assert.equal(gateway.engine("transcription").pid, pid);
});

test("interface 4, Speech: WAV; another voice is fetched and loaded first, the same one restarts nothing", async (t) => {
  const gateway = await startSpeechGateway(t);
  const began = performance.now();
  const first = await gateway.say(lowVoice);
  t.diagnostic(`first speech: ${Math.round(performance.now() - began)} ms`);
  assert.equal(first.sampleRate, rates[lowVoice]);
  const { pid } = gateway.engine("synthesis");
  const same = performance.now();
  assert.equal((await gateway.say(lowVoice)).sampleRate, rates[lowVoice]);
  t.diagnostic(`the same voice: ${Math.round(performance.now() - same)} ms`);
  assert.equal(gateway.engine("synthesis").pid, pid);
  assert.deepEqual((await gateway.json("/api/tts/voices/cached")).body, { voices: [lowVoice] });
  const other = performance.now();
  assert.equal((await gateway.say(highVoice)).sampleRate, rates[highVoice]);
  t.diagnostic(`another voice, fetched: ${Math.round(performance.now() - other)} ms`);
  assert.notEqual(gateway.engine("synthesis").pid, pid);
  assert.deepEqual((await gateway.json("/api/tts/voices/cached")).body, { voices: [highVoice, lowVoice] });
  const { body } = await gateway.json("/api/desired");
  assert.match(JSON.stringify(body), new RegExp(`"voice":"${highVoice}"`));
  const unknown = await gateway.json("/v1/audio/speech", postWith({ input: "Hello", voice: "en_US-hihg-low" }));
  assert.equal(unknown.status, 404, JSON.stringify(unknown.body));
});
