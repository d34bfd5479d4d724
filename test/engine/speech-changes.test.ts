// Speech while the world changes: voices under load, engines that are killed, missing or idle, a hub that is away.
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdir, symlink } from "node:fs/promises";
import { request } from "node:http";
import { basename, join } from "node:path";
import { test } from "node:test";
import { parseWav } from "../../src/speech/wav.ts";
import { codeOf, messageOf } from "../support/own-calls.ts";
import { isRunning } from "../support/processes.ts";
import { postWith } from "../support/requests.ts";
import { until } from "../support/scratch.ts";
import { sherpa } from "../support/sherpa.ts";
import {
  highVoice,
  holdFetch,
  longText,
  lowVoice,
  otherWords,
  rates,
  type SpeechGateway,
  soundForm,
  speechDocument,
  spokenWords,
  startSpeechGateway,
} from "../support/speech.ts";
import { form, someSound } from "../support/whisper.ts";

function kill(pid: number | null): void {
  assert.ok(pid !== null);
  process.kill(pid, "SIGKILL");
}

function conditionOf(gateway: SpeechGateway): string {
  const found = gateway.gateway.status().conditions.find(({ type }) => type === "SpeechReady");
  return `${found?.status} ${found?.reason}`;
}

test("voices that change under load: every answer is whole and of the voice that was asked for", async (t) => {
  const gateway = await startSpeechGateway(t);
  await gateway.say(lowVoice);
  const slow = gateway.say(lowVoice, longText);
  await until("it speaks", () => gateway.gateway.status().speech.synthesis?.inFlight === 1);
  const order = [highVoice, lowVoice, highVoice, highVoice, lowVoice, lowVoice];
  const answers = await Promise.all(order.map((voice) => gateway.say(voice)));
  assert.deepEqual(
    answers.map(({ sampleRate }) => sampleRate),
    order.map((voice) => rates[voice]),
  );
  const { samples, sampleRate } = await slow;
  assert.equal(sampleRate, rates[lowVoice]);
  assert.ok(samples.length / sampleRate > 100, "nothing of it was cut off");

  await t.test("by the file: what is under way is finished first", async () => {
    const voice = gateway.gateway.status().speech.synthesis?.choice ?? "";
    const next = voice === lowVoice ? highVoice : lowVoice;
    const under = gateway.say(voice, longText);
    await until("it speaks", () => gateway.gateway.status().speech.synthesis?.inFlight === 1);
    await gateway.writeConfig(`version: 1\n${speechDocument.replace(lowVoice, next)}\n# edited\n`);
    const patched = { speech: { synthesis: { voice: next } } };
    await gateway.json("/api/desired", {
      method: "PATCH",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(patched),
    });
    const whole = await under;
    assert.equal(whole.sampleRate, rates[voice]);
    assert.ok(whole.samples.length / whole.sampleRate > 100);
    assert.equal((await gateway.say(next)).sampleRate, rates[next]);
  });
});

test("another transcription model by the file, and engines that are killed", async (t) => {
  const gateway = await startSpeechGateway(t);
  const text = async (): Promise<string> => {
    const answer = await gateway.json("/v1/audio/transcriptions", soundForm(someSound()));
    return answer.status === 200 ? (answer.body["text"] as string).trim() : `${answer.status} ${codeOf(answer)}`;
  };
  assert.equal(await text(), spokenWords);
  await gateway.writeConfig(`version: 1\n${speechDocument.replace("said.en", "base.en")}\n`);
  await gateway.until("the other one", ({ speech }) => {
    const { choice, running } = speech.transcription ?? { choice: "", running: null };
    return choice === "ggml-base.en.bin" && running !== "ggml-said.en.bin";
  });
  assert.equal(await text(), otherWords);

  await t.test("killed while it hears: the upload is told so, and the next one is heard", async () => {
    const body = form({ file: Buffer.alloc(16_000_000) });
    const upload = request(`${gateway.url}/v1/audio/transcriptions`, {
      method: "POST",
      headers: {
        "content-type": "multipart/form-data; boundary=----speech-test-boundary",
        "content-length": body.length,
      },
    });
    const answered = new Promise<number>((resolve, reject) => {
      upload.on("response", (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      });
      upload.on("error", reject);
    });
    // More than the system holds: most of it is taken by the engine.
    upload.write(body.subarray(0, 15_000_000));
    await once(upload, "drain");
    kill(gateway.engine("transcription").pid);
    await gateway.until("its end is noticed", ({ speech }) => speech.transcription?.phase === "stopped");
    upload.end(body.subarray(15_000_000));
    assert.equal(await answered, 502);
    assert.equal(await text(), otherWords);
    assert.equal(gateway.gateway.status().speech.transcription?.crashes, 1);
  });
  await t.test("killed in a long text: the piece is asked for again, and the answer is whole", async () => {
    await gateway.say(lowVoice);
    const input = "One more sentence of a good length, to be read aloud. ".repeat(120);
    const whole = await gateway.say(lowVoice, input);
    const response = await fetch(`${gateway.url}/v1/audio/speech`, postWith({ voice: lowVoice, input }));
    assert.equal(response.status, 200);
    const { pid } = gateway.engine("synthesis");
    kill(pid);
    const { samples } = parseWav(new Uint8Array(await response.arrayBuffer()));
    assert.equal(samples.length, whole.samples.length);
    assert.notEqual(gateway.engine("synthesis").pid, pid);
    assert.equal(gateway.gateway.status().speech.synthesis?.crashes, 1);
  });
});

test("an engine that is missing: the one command is named; once it is there, the next request works", async (t) => {
  const gateway = await startSpeechGateway(t, {
    yaml: `speech: { synthesis: { voice: ${lowVoice} } }`,
    embedded: false,
    flags: ["--speech-engine", "embedded"],
  });
  const missing = await gateway.json("/v1/audio/speech", postWith({ voice: lowVoice, input: "Hello" }));
  assert.deepEqual([missing.status, codeOf(missing)], [503, "engine_missing"]);
  assert.match(messageOf(missing), /`node \S+ engine install sherpa --state \S+`/);
  await until("it is said", () => conditionOf(gateway) === "False EngineMissing");
  await gateway.until("chat works", (status) => status.gateway.ready);
  const { packageDir } = await sherpa();
  await mkdir(join(gateway.stateDir, "engines"));
  await symlink(packageDir, join(gateway.stateDir, "engines", basename(packageDir)));
  assert.equal((await gateway.say(lowVoice)).sampleRate, rates[lowVoice]);
  await until("it is said", () => conditionOf(gateway) === "True Serving");
});

test("an idle engine ends; one that is to run always runs without being asked", async (t) => {
  const gateway = await startSpeechGateway(t, {
    yaml: `speech: { synthesis: { voice: ${lowVoice} } }`,
    flags: ["--speech-idle", "0.3"],
  });
  await gateway.say(lowVoice);
  const { pid } = gateway.engine("synthesis");
  await gateway.until("it ended", ({ speech }) => speech.synthesis?.phase === "stopped");
  assert.equal(await isRunning(pid ?? 0), false);
  await until("it is said", () => conditionOf(gateway) === "True Idle");
  assert.equal((await gateway.say(lowVoice)).sampleRate, rates[lowVoice]);
  await gateway.writeConfig(`version: 1\nspeech: { synthesis: { voice: ${lowVoice} }, start: now }\n`);
  await gateway.until("it runs", ({ speech }) => speech.synthesis?.phase === "ready");
  const running = gateway.engine("synthesis").pid;
  kill(running);
  await gateway.until("it runs again", ({ speech }) => {
    const { phase, pid: now } = speech.synthesis ?? { phase: "off", pid: null };
    return phase === "ready" && now !== running;
  });
});

test("a voice that cannot be had now: said at once, and the document keeps the one before", async (t) => {
  const gateway = await startSpeechGateway(t);
  await gateway.say(lowVoice);
  const { pid } = gateway.engine("synthesis");
  gateway.hub.corrupt(`en/en_US/high/low/${highVoice}.onnx`);
  const damaged = await gateway.json("/v1/audio/speech", postWith({ voice: highVoice, input: "Hello" }));
  assert.deepEqual([damaged.status, codeOf(damaged)], [502, "checksum_mismatch"]);
  await gateway.hub.close();
  const refused = await gateway.json("/v1/audio/speech", postWith({ voice: highVoice, input: "Hello" }));
  assert.deepEqual([refused.status, codeOf(refused)], [502, "hub_unreachable"]);
  assert.equal(gateway.gateway.status().speech.synthesis?.choice, lowVoice);
  assert.equal((await gateway.say(lowVoice)).sampleRate, rates[lowVoice]);
  assert.equal(gateway.engine("synthesis").pid, pid);
  assert.deepEqual((await gateway.json("/api/tts/voices/cached")).body, { voices: [lowVoice] });
});

test("a suspended document: nothing is started, and a request is told so", async (t) => {
  const gateway = await startSpeechGateway(t, { yaml: `suspend: true\n${speechDocument}` });
  const answer = await gateway.json("/v1/audio/speech", postWith({ voice: lowVoice, input: "Hello" }));
  assert.deepEqual([answer.status, codeOf(answer)], [409, "suspended"]);
  assert.equal(gateway.engine("synthesis").phase, "stopped");
});

test("a stop while it speaks: the answer is finished, and nothing is left", async (t) => {
  const gateway = await startSpeechGateway(t);
  const spoken = await fetch(`${gateway.url}/v1/audio/speech`, postWith({ voice: lowVoice, input: longText }));
  const { pid } = gateway.engine("synthesis");
  const stopped = gateway.gateway.stop();
  const { samples, sampleRate } = parseWav(new Uint8Array(await spoken.arrayBuffer()));
  assert.ok(samples.length / sampleRate > 100);
  await stopped;
  assert.equal(await isRunning(pid ?? 0), false);
});

test("a client that leaves while its voice is fetched takes its wish along", async (t) => {
  const gateway = await startSpeechGateway(t);
  await gateway.say(lowVoice);
  const { hold, leave, asked } = await holdFetch(gateway, highVoice);
  // The loaded voice serves meanwhile.
  assert.equal((await gateway.say(lowVoice)).sampleRate, rates[lowVoice]);
  assert.equal((await gateway.say("alloy")).sampleRate, rates[lowVoice]);
  leave.abort();
  await assert.rejects(asked);
  await gateway.until(
    "as before",
    ({ speech, running }) => speech.synthesis?.choice === lowVoice && running.length === 0,
  );
  await hold.left;
  assert.deepEqual((await gateway.json("/api/tts/voices/cached")).body, { voices: [lowVoice] });
  assert.equal((await gateway.say(lowVoice)).sampleRate, rates[lowVoice]);
});
