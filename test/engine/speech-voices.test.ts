// Voices that a request asks for: speakers, texts without a sound, and one that is fetched while others change theirs.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { finished } from "../support/contract.ts";
import { codeOf, messageOf } from "../support/own-calls.ts";
import { piperVoiceConfig, toneHertz } from "../support/piper-voice.ts";
import { postWith } from "../support/requests.ts";
import { writeVoice } from "../support/sherpa.ts";
import { pitch } from "../support/sound.ts";
import {
  highVoice,
  holdFetch,
  longText,
  lowVoice,
  rates,
  soundForm,
  speechDocument,
  startSpeechGateway,
} from "../support/speech.ts";
import { someSound } from "../support/whisper.ts";

const three = "en_US-three-low";

test("a voice's speakers, by number; a speaker or a text that cannot be spoken changes nobody's voice", async (t) => {
  const gateway = await startSpeechGateway(t);
  await writeVoice(join(gateway.stateDir, "voices"), three, { speakers: 3 });
  const first = await gateway.say(three);
  assert.ok(Math.abs(pitch(first.samples, first.sampleRate) - toneHertz) < 5);
  const { pid } = gateway.engine("synthesis");
  const third = await gateway.say(`${three}:2`);
  assert.ok(Math.abs(pitch(third.samples, third.sampleRate) - 3 * toneHertz) < 8);
  assert.equal(gateway.engine("synthesis").pid, pid);
  assert.equal((await gateway.say(lowVoice)).sampleRate, rates[lowVoice]);
  const { body } = await gateway.json("/api/desired");
  for (const [voice, input] of [
    [`${three}:3`, "Hello."],
    [`${three}:nobody`, "Hello."],
    [`${highVoice}:5`, "Hello."],
    [three, "..."],
    [highVoice, "— …"],
  ] as const) {
    const answer = await gateway.json("/v1/audio/speech", postWith({ voice, input }));
    assert.deepEqual([answer.status, codeOf(answer)], [400, "invalid_request"], voice);
  }
  const refused = await gateway.json("/v1/audio/speech", postWith({ voice: `${three}:3`, input: "Hello." }));
  assert.match(messageOf(refused), /has no speaker "3"; it has 3/);
  assert.deepEqual((await gateway.json("/api/desired")).body, body);
});

test("a voice that is being fetched keeps nobody from the voices that are here", async (t) => {
  const gateway = await startSpeechGateway(t);
  await writeVoice(join(gateway.stateDir, "voices"), three, { sampleRate: 8_000 });
  await gateway.say(lowVoice);
  const { hold, leave, asked } = await holdFetch(gateway, highVoice);
  assert.equal((await gateway.say(three)).sampleRate, 8_000);
  assert.equal((await gateway.say(lowVoice)).sampleRate, rates[lowVoice]);
  assert.equal(gateway.gateway.status().running.length, 1, "it is still being fetched");
  leave.abort();
  await assert.rejects(asked);
  await gateway.until("it is called off", ({ running }) => running.length === 0);
  await hold.left;
});

test("OpenAI's names mean the document's voice, and leave the document alone", async (t) => {
  const gateway = await startSpeechGateway(t);
  await gateway.say(highVoice);
  await gateway.say(lowVoice);
  const write = async (voice: string): Promise<void> => {
    await gateway.writeConfig(`version: 1\n${speechDocument.replace(lowVoice, voice)}\n`);
    await gateway.until("it is read", ({ speech }) => speech.synthesis?.choice === voice);
  };

  await t.test("in the middle of a change by the file: the voice that the file names", async () => {
    const under = gateway.say(lowVoice, longText);
    await gateway.until("it speaks", ({ speech }) => speech.synthesis?.inFlight === 1);
    // It would be through before a slow disk shows the edit.
    const { pid } = gateway.engine("synthesis");
    process.kill(pid ?? 0, "SIGSTOP");
    await write(highVoice);
    const during = gateway.gateway.status().speech.synthesis;
    assert.deepEqual([during?.running, during?.inFlight], [lowVoice, 1], "the change is under way");
    const body = (await gateway.json("/api/desired")).body;
    process.kill(pid ?? 0, "SIGCONT");
    assert.equal((await gateway.say("alloy")).sampleRate, rates[highVoice]);
    assert.equal((await under).sampleRate, rates[lowVoice]);
    assert.deepEqual((await gateway.json("/api/desired")).body, body);
  });
  await t.test("where the file's voice cannot be had: what is wrong with it", async () => {
    await write("de_DE-many1-low");
    const body = (await gateway.json("/api/desired")).body;
    const answer = await gateway.json("/v1/audio/speech", postWith({ voice: "Alloy", input: "Hello." }));
    assert.deepEqual([answer.status, codeOf(answer)], [404, "hub_not_found"]);
    assert.deepEqual((await gateway.json("/api/desired")).body, body);
  });
});

test("voices that are asked for all at once: every answer is of its own voice, and the queue is bounded", async (t) => {
  const gateway = await startSpeechGateway(t);
  await writeVoice(join(gateway.stateDir, "voices"), three, { sampleRate: 8_000 });
  await gateway.say(highVoice);
  await gateway.say(lowVoice);
  const voices = Array.from({ length: 9 }, (_, index) => [lowVoice, highVoice, three][index % 3] ?? three);
  const began = performance.now();
  const answers = await Promise.all(voices.map(async (voice) => (await gateway.say(voice)).sampleRate));
  assert.deepEqual(
    answers,
    voices.map((voice) => rates[voice] ?? 8_000),
  );
  t.diagnostic(`9 answers in 3 voices: ${Math.round(performance.now() - began)} ms`);

  await t.test("a crowd that names one other voice has it started once", async () => {
    await gateway.say(highVoice);
    const starts = (): number => finished(gateway, "speech.start").length;
    const before = starts();
    const crowd = await Promise.all(
      Array.from({ length: 60 }, () =>
        fetch(`${gateway.url}/v1/audio/speech`, postWith({ voice: lowVoice, input: "Hi." })),
      ),
    );
    const answered = crowd.filter(({ status }) => status === 200).length;
    const bodies = await Promise.all(crowd.filter(({ status }) => status !== 200).map((each) => each.json()));
    assert.ok(answered >= 32, `${answered} answers`);
    assert.ok(bodies.every((body) => codeOf({ body: body as Record<string, unknown> }) === "busy"));
    assert.equal(starts() - before, 1);
  });
});

test("a voice that cannot start does not stop the one that speaks, nor stays the document's", async (t) => {
  const gateway = await startSpeechGateway(t);
  await gateway.say(lowVoice);
  const { pid } = gateway.engine("synthesis");
  const documented = async (): Promise<unknown> => (await gateway.json("/api/desired")).body["document"];
  const document = await documented();
  const voicesDir = join(gateway.stateDir, "voices");
  await writeVoice(voicesDir, three, { facts: { phoneme_id_map: {} } });
  const answer = await gateway.json("/v1/audio/speech", postWith({ voice: three, input: "Hello." }));
  assert.deepEqual([answer.status, codeOf(answer)], [503, "engine_failed"]);
  assert.match(messageOf(answer), /^en_US-three-low\.onnx\.json describes no voice: phoneme_id_map/);
  await writeFile(join(voicesDir, "en_US-noise-low.onnx"), "no model");
  await writeFile(join(voicesDir, "en_US-noise-low.onnx.json"), JSON.stringify(piperVoiceConfig(16_000)));
  const noise = await gateway.json("/v1/audio/speech", postWith({ voice: "en_US-noise-low", input: "Hello." }));
  assert.deepEqual([noise.status, codeOf(noise)], [503, "engine_failed"]);
  assert.match(messageOf(noise), /^the speech engine ended while starting: [^\n]+$/);
  assert.ok(!messageOf(noise).includes(gateway.stateDir), messageOf(noise));
  assert.deepEqual(await documented(), document);
  assert.equal((await gateway.say(lowVoice)).sampleRate, rates[lowVoice]);
  assert.equal(gateway.engine("synthesis").pid, pid);

  await t.test("in the file: whoever names none is told, and so is the condition", async () => {
    await gateway.writeConfig(`version: 1\n${speechDocument.replace(lowVoice, "en_US-noise-low")}\n`);
    await gateway.until("it is said", ({ conditions }) =>
      conditions.some(({ type, reason }) => type === "SpeechReady" && reason === "EngineFailed"),
    );
    const told = await gateway.json("/v1/audio/speech", postWith({ voice: "alloy", input: "Hello." }));
    assert.deepEqual([told.status, codeOf(told)], [503, "engine_failed"]);
    assert.equal((await gateway.say(lowVoice)).sampleRate, rates[lowVoice]);
  });
  await t.test(
    "names that can be no voice's are refused at once; a model without a description is no voice",
    async () => {
      const asked = gateway.hub.requests.length;
      for (const voice of ["../../etc/passwd", "", "a b", "x/y", ".onnx", `${"x".repeat(101)}`]) {
        const refused = await gateway.json("/v1/audio/speech", postWith({ voice, input: "Hello." }));
        assert.deepEqual(
          [refused.status, (refused.body["error"] as { param: string }).param],
          [400, "voice"],
          JSON.stringify(voice),
        );
      }
      assert.equal(gateway.hub.requests.length, asked);
      await writeFile(join(voicesDir, "my-own.onnx"), "a voice");
      const half = await gateway.json("/v1/audio/speech", postWith({ voice: "my-own", input: "Hello." }));
      assert.deepEqual([half.status, codeOf(half)], [404, "voice_not_found"]);
      assert.match(messageOf(half), /^there is no voice "my-own"/);
    },
  );
});

test("a voice that is here is found however its name is written, also without the hub", async (t) => {
  const gateway = await startSpeechGateway(t);
  await gateway.say(lowVoice);
  const tugao = "pt_PT-tug\u00e3o-low";
  await writeVoice(join(gateway.stateDir, "voices"), tugao, { sampleRate: 8_000 });
  await gateway.hub.close();
  const { pid } = gateway.engine("synthesis");
  assert.equal((await gateway.say(lowVoice.toUpperCase())).sampleRate, rates[lowVoice]);
  assert.equal(gateway.engine("synthesis").pid, pid);
  assert.equal((await gateway.say(tugao.toUpperCase().normalize("NFD"))).sampleRate, 8_000);
  assert.equal(gateway.gateway.status().speech.synthesis?.choice, tugao);
});

test("nor does a model that is being pulled keep anybody from a voice", async (t) => {
  const gateway = await startSpeechGateway(t);
  gateway.hub.addRepo("acme/big-GGUF", { files: { "big-Q8_0.gguf": Buffer.alloc(2_000_000, 1) } });
  const hold = gateway.hub.throttle("big-Q8_0.gguf", 100);
  const wanted = { ...postWith({ models: { "acme/big-GGUF:Q8_0": {} } }), method: "PATCH" };
  await gateway.json("/api/desired", wanted);
  await hold.reached;
  assert.equal((await gateway.say(highVoice)).sampleRate, rates[highVoice]);
  const { running } = gateway.gateway.status();
  assert.deepEqual(
    running.map((action) => (action as { key: string }).key),
    ["model/acme/big-GGUF:Q8_0"],
    "it is still being pulled",
  );
});

test("speech is sent as sound and not as events", async (t) => {
  const gateway = await startSpeechGateway(t);
  const sse = await gateway.json("/v1/audio/speech", postWith({ voice: lowVoice, input: "Hi", stream_format: "sse" }));
  assert.deepEqual([sse.status, (sse.body["error"] as { param: string }).param], [400, "stream_format"]);
  const form = await gateway.json("/v1/audio/speech", soundForm(someSound()));
  assert.deepEqual([form.status, codeOf(form)], [415, "unsupported_media_type"]);
  assert.match(messageOf(form), /: application\/json is expected$/);
});

test("a voice that cannot be had in the document is said, and others are spoken in", async (t) => {
  const gateway = await startSpeechGateway(t);
  await gateway.say(lowVoice);
  await gateway.writeConfig(`version: 1\n${speechDocument.replace(lowVoice, "en_US-nobody-low")}\n`);
  await gateway.until("it is said", ({ conditions }) =>
    conditions.some(({ type, reason }) => type === "SpeechReady" && reason === "VoiceMissing"),
  );
  for (const voice of ["alloy", "en_US-nobody-low"]) {
    const answer = await gateway.json("/v1/audio/speech", postWith({ voice, input: "Hello." }));
    assert.deepEqual([answer.status, codeOf(answer)], [404, "voice_not_found"], voice);
  }
  assert.equal((await gateway.say(lowVoice)).sampleRate, rates[lowVoice]);
});
