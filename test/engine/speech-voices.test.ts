// Voices that a request asks for: speakers, texts without a sound, and one that is fetched while others change theirs.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { finished } from "../support/contract.ts";
import { codeOf, messageOf, postWith } from "../support/own-calls.ts";
import { toneHertz } from "../support/piper-voice.ts";
import { writeVoice } from "../support/sherpa.ts";
import { pitch } from "../support/sound.ts";
import {
  fakePiper,
  highVoice,
  longText,
  lowVoice,
  rates,
  soundForm,
  speechDocument,
  spokenWords,
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
  assert.ok(Math.abs(pitch(third.samples, third.sampleRate) - 3 * toneHertz) < 5);
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
  const hold = gateway.hub.throttle(`en/en_US/high/low/${highVoice}.onnx`, 100);
  const leave = new AbortController();
  const asked = fetch(`${gateway.url}/v1/audio/speech`, {
    ...postWith({ voice: highVoice, input: "Hello" }),
    signal: leave.signal,
  });
  await hold.reached;
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
    await write(highVoice);
    const during = gateway.gateway.status().speech.synthesis;
    assert.deepEqual([during?.running, during?.inFlight], [lowVoice, 1], "the change is under way");
    const body = (await gateway.json("/api/desired")).body;
    assert.equal((await gateway.say("alloy")).sampleRate, rates[highVoice]);
    assert.equal((await under).sampleRate, rates[lowVoice]);
    assert.deepEqual((await gateway.json("/api/desired")).body, body);
  });
  await t.test("while the file's voice is pulled: the one that runs", async () => {
    const { pid } = gateway.engine("synthesis");
    await write("de_DE-many1-low");
    const body = (await gateway.json("/api/desired")).body;
    assert.equal((await gateway.say("Alloy")).sampleRate, rates[highVoice]);
    assert.equal(gateway.engine("synthesis").pid, pid);
    assert.deepEqual((await gateway.json("/api/desired")).body, body);
  });
});

test("voices that are asked for all at once: each is loaded once or twice, and every answer is of its own voice", async (t) => {
  const gateway = await startSpeechGateway(t);
  await writeVoice(join(gateway.stateDir, "voices"), three, { sampleRate: 8_000 });
  await gateway.say(highVoice);
  await gateway.say(lowVoice);
  const starts = (): number => finished(gateway, "speech.start").length;
  const before = starts();
  const voices = Array.from({ length: 30 }, (_, index) => [lowVoice, highVoice, three][index % 3] ?? three);
  const began = performance.now();
  const answers = await Promise.all(voices.map(async (voice) => (await gateway.say(voice)).sampleRate));
  assert.deepEqual(
    answers,
    voices.map((voice) => rates[voice] ?? 8_000),
  );
  t.diagnostic(`30 answers: ${starts() - before} starts, ${Math.round(performance.now() - began)} ms`);
  assert.ok(starts() - before <= 4);

  await t.test("a crowd that wants one other voice shares its start, as far as an engine takes texts", async () => {
    await gateway.say(highVoice);
    const asked = starts();
    const crowd = await Promise.all(
      Array.from({ length: 60 }, () =>
        fetch(`${gateway.url}/v1/audio/speech`, postWith({ voice: lowVoice, input: "Hi." })),
      ),
    );
    const answered = crowd.filter(({ status }) => status === 200).length;
    const bodies = await Promise.all(crowd.filter(({ status }) => status !== 200).map((each) => each.json()));
    assert.ok(answered >= 32, `${answered} answers`);
    assert.ok(bodies.every((body) => codeOf({ body: body as Record<string, unknown> }) === "busy"));
    assert.equal(starts() - asked, 1);
  });
  await t.test("nobody waits for ever for another one", async () => {
    let isOver = false;
    const crowd = Array.from({ length: 4 }, async () => {
      while (!isOver)
        assert.equal((await gateway.say(lowVoice, "Some words to be said. ".repeat(20))).sampleRate, rates[lowVoice]);
    });
    await gateway.until("they speak", ({ speech }) => (speech.synthesis?.inFlight ?? 0) > 1);
    assert.equal((await gateway.say(highVoice)).sampleRate, rates[highVoice]);
    isOver = true;
    await Promise.all(crowd);
  });
});

test("a voice that cannot speak does not stay the document's, and what Piper cannot do changes nothing", async (t) => {
  const gateway = await startSpeechGateway(t);
  await gateway.say(lowVoice);
  const documented = async (): Promise<unknown> => (await gateway.json("/api/desired")).body["document"];
  const document = await documented();
  await writeVoice(join(gateway.stateDir, "voices"), three, { facts: { espeak: { voice: "no-language-at-all" } } });
  const trying = gateway.json("/v1/audio/speech", postWith({ voice: three, input: "Hello." }));
  await gateway.until("it is tried", ({ speech }) => speech.synthesis?.choice === three);
  // They mean the voice that it will be again.
  const meanwhile = await Promise.all(["alloy", "nova", "echo"].map((voice) => gateway.say(voice)));
  assert.deepEqual(
    meanwhile.map(({ sampleRate }) => sampleRate),
    meanwhile.map(() => rates[lowVoice]),
  );
  const answer = await trying;
  assert.ok(answer.status >= 500, JSON.stringify(answer.body));
  assert.deepEqual(await documented(), document);

  await t.test("Piper of the oldest kind at another speed", async () => {
    const piper = await startSpeechGateway(t, {
      flags: ["--speech-engine", "auto", "--piper", await fakePiper(t, "text")],
    });
    await piper.say(highVoice);
    await piper.say(lowVoice);
    const { pid } = piper.engine("synthesis");
    const { body } = await piper.json("/api/desired");
    const refused = await piper.json("/v1/audio/speech", postWith({ voice: highVoice, input: "Hello.", speed: 2 }));
    assert.deepEqual([refused.status, (refused.body["error"] as { param: string }).param], [400, "speed"]);
    assert.deepEqual((await piper.json("/api/desired")).body, body);
    await piper.say("alloy");
    assert.equal(piper.engine("synthesis").pid, pid);
  });
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

test("what streams and what does not: a transcription as events, speech never", async (t) => {
  const gateway = await startSpeechGateway(t);
  const response = await fetch(
    `${gateway.url}/v1/audio/transcriptions`,
    soundForm(someSound(), { stream: "true", response_format: "json" }),
  );
  assert.equal(response.headers.get("content-type"), "text/event-stream");
  const events = (await response.text())
    .split("\n\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line.replace(/^data: /, "")) as { type: string; text?: string });
  assert.deepEqual(
    events.map(({ type }) => type),
    ["transcript.text.delta", "transcript.text.done"],
  );
  assert.equal(events.at(-1)?.text?.trim(), spokenWords);
  const sse = await gateway.json("/v1/audio/speech", postWith({ voice: lowVoice, input: "Hi", stream_format: "sse" }));
  assert.deepEqual([sse.status, (sse.body["error"] as { param: string }).param], [400, "stream_format"]);
  const form = await gateway.json("/v1/audio/speech", soundForm(someSound()));
  assert.deepEqual([form.status, codeOf(form)], [415, "unsupported_media_type"]);
  assert.match(messageOf(form), /: application\/json is expected$/);
});

test("a voice that cannot be had in the document: the one before goes on for those who name none, idle or not", async (t) => {
  const gateway = await startSpeechGateway(t, { flags: ["--speech-idle", "0.2"] });
  await gateway.say(lowVoice);
  await gateway.until("it is idle", ({ speech }) => speech.synthesis?.phase === "stopped");
  await gateway.writeConfig(`version: 1\n${speechDocument.replace(lowVoice, "en_US-nobody-low")}\n`);
  await gateway.until("it is said", ({ conditions }) =>
    conditions.some(
      ({ type, reason, message }) =>
        type === "SpeechReady" && reason === "VoiceMissing" && message.endsWith(`${lowVoice} still answers`),
    ),
  );
  assert.equal((await gateway.say("alloy")).sampleRate, rates[lowVoice]);
  const exactly = await gateway.json("/v1/audio/speech", postWith({ voice: "en_US-nobody-low", input: "Hello." }));
  assert.deepEqual([exactly.status, codeOf(exactly)], [404, "voice_not_found"]);
});
