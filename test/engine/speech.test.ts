// The speech routes through the gateway on the real engines: what they answer, and what they refuse.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { createGatewayClient } from "model-gateway/client";
import { parseWav } from "../../src/speech/wav.ts";
import { codeOf, messageOf } from "../support/own-calls.ts";
import { toneHertz } from "../support/piper-voice.ts";
import { isRunning } from "../support/processes.ts";
import { postWith } from "../support/requests.ts";
import { until } from "../support/scratch.ts";
import { pitch } from "../support/sound.ts";
import {
  highVoice,
  lowVoice,
  rates,
  soundForm,
  speechDocument,
  spokenWords,
  startSpeechGateway,
} from "../support/speech.ts";
import { someSound } from "../support/whisper.ts";

test("interface 4, Transcription: an upload becomes text, by an engine that starts when it is asked for", async (t) => {
  const gateway = await startSpeechGateway(t);
  await gateway.until("both are there", ({ conditions }) =>
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

  await t.test("other forms of the answer are the engine's own", async () => {
    const form = soundForm(someSound(), { response_format: "srt" });
    const response = await fetch(`${gateway.url}/v1/audio/transcriptions`, form);
    assert.equal(response.status, 200);
    assert.match(await response.text(), /00:00:0\d,\d+ --> 00:0/);
  });
  await t.test("several at once follow one another", async () => {
    const answers = await Promise.all(
      Array.from({ length: 4 }, () => gateway.json("/v1/audio/transcriptions", soundForm(someSound()))),
    );
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 200, 200, 200],
    );
  });
  await t.test("what cannot be read is told, and what can", async () => {
    const noise = await gateway.json("/v1/audio/transcriptions", soundForm(Buffer.alloc(50_000, "no sound")));
    assert.deepEqual([noise.status, codeOf(noise)], [400, "invalid_request"]);
    assert.match(messageOf(noise), /WAV, FLAC or MP3.*ffmpeg/);
    const form = new FormData();
    form.set("model", "x");
    const empty = await gateway.json("/v1/audio/transcriptions", { method: "POST", body: form });
    assert.deepEqual([empty.status, codeOf(empty)], [400, "invalid_request"]);
  });
  await t.test("its output is kept, without the path that keeps others out, and without what was said", async () => {
    const output = await (await fetch(`${gateway.url}/api/logs?model=whisper-server`)).text();
    assert.match(output, /^\S+Z whisper_/m);
    const args = (await readFile(`/proc/${pid}/cmdline`, "utf8")).split("\0");
    const path = args[args.indexOf("--request-path") + 1] ?? "";
    assert.ok(path.length > 30 && !output.includes(path), path);
    assert.ok(!output.includes(spokenWords), output);
  });
});

test("interface 4, Speech: WAV; another voice is fetched and loaded first, the same one restarts nothing", async (t) => {
  const gateway = await startSpeechGateway(t);
  const began = performance.now();
  const first = await gateway.say(lowVoice);
  t.diagnostic(`first speech: ${Math.round(performance.now() - began)} ms`);
  assert.equal(first.sampleRate, rates[lowVoice]);
  assert.ok(Math.abs(pitch(first.samples, first.sampleRate) - toneHertz) < 5);
  const { pid } = gateway.engine("synthesis");
  const same = performance.now();
  assert.equal((await gateway.say(lowVoice)).sampleRate, rates[lowVoice]);
  t.diagnostic(`the same voice: ${Math.round(performance.now() - same)} ms`);
  assert.equal((await gateway.say("alloy")).sampleRate, rates[lowVoice]);
  assert.equal(gateway.engine("synthesis").pid, pid);
  assert.deepEqual((await gateway.json("/api/tts/voices/cached")).body, { voices: [lowVoice] });
  const other = performance.now();
  assert.equal((await gateway.say(highVoice.toUpperCase())).sampleRate, rates[highVoice]);
  t.diagnostic(`another voice, fetched: ${Math.round(performance.now() - other)} ms`);
  assert.notEqual(gateway.engine("synthesis").pid, pid);
  assert.deepEqual((await gateway.json("/api/tts/voices/cached")).body, { voices: [highVoice, lowVoice] });
  const { body } = await gateway.json("/api/desired");
  const text = JSON.stringify(body);
  assert.match(text, new RegExp(`"voice":"${highVoice}"`));
  assert.match(text, /http:POST \/v1\/audio\/speech/);

  await t.test("a voice that does not exist changes nothing", async () => {
    const running = gateway.engine("synthesis").pid;
    const unknown = await gateway.json("/v1/audio/speech", postWith({ input: "Hello", voice: "en_US-hihg-low" }));
    assert.deepEqual([unknown.status, codeOf(unknown)], [404, "voice_not_found"]);
    assert.match(messageOf(unknown), /en_US-hihg-low.*\/api\/tts\/voices\/search/);
    assert.equal(gateway.engine("synthesis").pid, running);
    assert.equal((await gateway.json("/api/desired")).body["generation"], body["generation"]);
  });
  await t.test("speed, and sound without a header", async () => {
    const plain = await gateway.say(highVoice, "One sentence.");
    const absent = await gateway.say(highVoice, "One sentence.", { speed: null, response_format: null, model: null });
    assert.equal(absent.samples.length, plain.samples.length);
    const slow = await gateway.say(highVoice, "One sentence.", { speed: 0.5 });
    assert.ok(Math.abs(slow.samples.length / plain.samples.length - 2) < 0.1);
    const request = postWith({ voice: highVoice, input: "One sentence.", response_format: "pcm" });
    const response = await fetch(`${gateway.url}/v1/audio/speech`, request);
    assert.equal(response.headers.get("content-type"), "audio/pcm;rate=22050;channels=1");
    assert.equal((await response.arrayBuffer()).byteLength, plain.samples.length * 2);
  });
  await t.test("nothing that can be spoken", async () => {
    const answer = await gateway.json("/v1/audio/speech", postWith({ input: "— …", voice: highVoice }));
    assert.deepEqual([answer.status, codeOf(answer)], [400, "invalid_request"]);
  });
  await t.test("20,000 characters: the first sound comes long before the last", async () => {
    const input = "The quick brown fox jumps over the lazy dog. ".repeat(445).slice(0, 20_000);
    const start = performance.now();
    const response = await fetch(`${gateway.url}/v1/audio/speech`, postWith({ input, voice: highVoice }));
    assert.equal(response.status, 200);
    const chunks: Uint8Array[] = [];
    let firstAt = 0;
    for await (const chunk of response.body ?? []) {
      if (firstAt === 0) firstAt = performance.now() - start;
      chunks.push(chunk as Uint8Array);
    }
    const whole = performance.now() - start;
    const { samples, sampleRate } = parseWav(Buffer.concat(chunks));
    t.diagnostic(
      `20,000 characters: ${Math.round(samples.length / sampleRate)} s of sound, first after ${Math.round(firstAt)} ms, all after ${Math.round(whole)} ms`,
    );
    assert.ok(samples.length / sampleRate > 100);
    assert.ok(firstAt < whole / 4, `${firstAt} of ${whole} ms`);
  });
});

test("what there is to choose from, and what is here of it", async (t) => {
  const gateway = await startSpeechGateway(t, { embedded: false });
  await gateway.until("both are pulled", ({ running, sync }) => running.length === 0 && sync !== "Unknown");
  const list = async (path: string): Promise<unknown> => (await gateway.json(path)).body;

  await t.test("interface 4, Cached voices: what is downloaded", async () => {
    assert.deepEqual(await list("/api/tts/voices/cached"), { voices: [lowVoice] });
    assert.ok(existsSync(join(gateway.stateDir, "voices", `${lowVoice}.MODEL_CARD`)));
  });
  await t.test("interface 4, Cached transcription models: ggml files in the cache", async () => {
    assert.deepEqual(await list("/api/stt/models/cached"), { models: ["ggml-said.en.bin"] });
  });
  await t.test("interface 4, Voice search: by id, speaker or language, whatever the case; eight fields", async () => {
    const keys = async (q: string): Promise<string[]> =>
      ((await list(`/api/tts/voices/search?q=${q}`)) as { key: string }[]).map(({ key }) => key);
    assert.deepEqual(await keys("EN_us-LOW"), [lowVoice]);
    assert.deepEqual(await keys("high"), [highVoice]);
    assert.deepEqual(await keys("en_US"), [highVoice, lowVoice]);
    assert.deepEqual(await keys("nobody"), []);
    const [entry] = (await list("/api/tts/voices/search?q=en_US-low")) as object[];
    assert.deepEqual(Object.keys(entry ?? {}).toSorted(), [
      "country",
      "key",
      "languageCode",
      "languageName",
      "name",
      "numSpeakers",
      "quality",
      "sizeBytes",
    ]);
  });
  await t.test("interface 8, Voice search maximum: 50 of more", async () => {
    assert.equal(((await list("/api/tts/voices/search?q=de_DE")) as object[]).length, 50);
    assert.equal(((await list("/api/tts/voices/search")) as object[]).length, 50);
  });
  await t.test("interface 4, Transcription model search: by file name, as repository file entries", async () => {
    assert.deepEqual(await list("/api/stt/models/search?q=TINY"), [{ path: "ggml-tiny.bin", size: 4 }]);
    const all = (await list("/api/stt/models/search?q=")) as { path: string }[];
    assert.deepEqual(
      all.map(({ path }) => path),
      ["ggml-base.en.bin", "ggml-said.en.bin", "ggml-tiny.bin"],
    );
  });
  await t.test("a voice's license, in what it takes on the disk", async () => {
    const { speech } = await createGatewayClient({ baseUrl: gateway.url }).disk.report();
    assert.deepEqual(
      speech.map(({ name, license }) => [name, license]),
      [
        [lowVoice, "CC BY-NC-SA 4.0"],
        ["ggml-said.en.bin", null],
      ],
    );
  });
  await t.test("the lists are kept for a time without the hub", async () => {
    await gateway.hub.close();
    assert.equal(((await list("/api/tts/voices/search?q=high")) as object[]).length, 1);
    assert.equal(((await list("/api/stt/models/search?q=tiny")) as object[]).length, 1);
  });
});

test("interface 4, Speech is off: unless it is asked for; then nothing is started and nothing fetched", async (t) => {
  const gateway = await startSpeechGateway(t, { yaml: "" });
  await gateway.converged();
  const answers = [
    await gateway.json("/v1/audio/speech", postWith({ input: "Hello", voice: lowVoice })),
    await gateway.json("/v1/audio/transcriptions", soundForm(someSound())),
    await gateway.json("/api/tts/voices/search?q=en"),
    await gateway.json("/api/stt/models/cached"),
  ];
  assert.deepEqual(
    answers.map((answer) => [answer.status, codeOf(answer)]),
    answers.map(() => [503, "speech_off"]),
  );
  assert.deepEqual(gateway.hub.requests, []);
  assert.deepEqual(gateway.gateway.status().speech, { transcription: null, synthesis: null });
  assert.equal(existsSync(join(gateway.stateDir, "voices")), false);

  await t.test("one half alone", async () => {
    await gateway.writeConfig(`version: 1\nspeech: { synthesis: { voice: ${lowVoice} } }\n`);
    await gateway.until("on", ({ speech }) => speech.synthesis !== null);
    assert.equal((await gateway.say(lowVoice)).sampleRate, rates[lowVoice]);
    const other = await gateway.json("/v1/audio/transcriptions", soundForm(someSound()));
    assert.deepEqual([other.status, codeOf(other)], [503, "speech_off"]);
    assert.match(messageOf(other), /^transcription is off\. Add `speech: .*` to gateway\.yaml\.$/);
  });
  await t.test("off again: the engine ends", async () => {
    const { pid } = gateway.engine("synthesis");
    await gateway.writeConfig("version: 1\n");
    await gateway.until("off", ({ speech }) => speech.synthesis === null);
    await until("it has ended", async () => !(await isRunning(pid ?? 0)));
    await gateway.writeConfig(`version: 1\n${speechDocument}\n`);
    // Its end is heard of a moment after the process is gone.
    await gateway.until("on, and not started", ({ speech }) => speech.synthesis?.phase === "stopped");
  });
});
