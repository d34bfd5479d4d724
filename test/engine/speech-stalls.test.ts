// What holds an engine of speech up: a client that stops sending or reading, an engine that hangs or has ended, and the
// gateway's own end. The next request always gets in, and each is answered.
import assert from "node:assert/strict";
import { request } from "node:http";
import { test } from "node:test";
import { cleanUp } from "../support/clean-up.ts";
import { isRunning, untilStopped } from "../support/processes.ts";
import { postWith } from "../support/requests.ts";
import { until } from "../support/scratch.ts";
import { heard, lowVoice, rates, type SpeechGateway, spokenWords, startSpeechGateway } from "../support/speech.ts";
import { form, someSound } from "../support/whisper.ts";

interface Answer {
  readonly status: number;
  readonly code: string | undefined;
  readonly connection: string | undefined;
}

/** An upload of which only so many bytes come. */
function beginUpload(gateway: SpeechGateway, bytes: number): Promise<Answer> {
  const body = form({ file: someSound() });
  return new Promise((resolve, reject) => {
    const call = request(`${gateway.url}/v1/audio/transcriptions`, {
      method: "POST",
      headers: {
        "content-type": "multipart/form-data; boundary=----speech-test-boundary",
        "content-length": body.length,
      },
    });
    call.on("response", (response) => {
      let text = "";
      response.on("data", (chunk: Buffer) => (text += chunk.toString()));
      response.on("end", () => {
        call.destroy();
        const { error } = JSON.parse(text) as { error?: { code: string } };
        resolve({ status: response.statusCode ?? 0, code: error?.code, connection: response.headers.connection });
      });
    });
    call.on("error", reject);
    call.write(body.subarray(0, bytes));
  });
}

function pidOf(gateway: SpeechGateway, kind: "transcription" | "synthesis"): number {
  const { pid } = gateway.engine(kind);
  assert.ok(pid !== null);
  return pid;
}

/** Ends with the test, also where nobody ended it. */
async function hang(t: Parameters<typeof cleanUp>[0], pid: number): Promise<void> {
  process.kill(pid, "SIGSTOP");
  cleanUp(t, () => {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It was ended.
    }
  });
  // On a busy machine it goes on for a moment, and answers.
  await untilStopped(pid);
}

test("an engine that hangs is noticed, said and replaced, and whoever waits is answered by the next one", async (t) => {
  const gateway = await startSpeechGateway(t, { flags: ["--silence-limit", "8"] });
  assert.equal(await heard(gateway), spokenWords);
  await gateway.say(lowVoice);
  for (const kind of ["transcription", "synthesis"] as const) {
    await t.test(kind, async () => {
      const pid = pidOf(gateway, kind);
      await hang(t, pid);
      const ask = (): Promise<string> =>
        kind === "transcription" ? heard(gateway) : gateway.say(lowVoice).then(({ sampleRate }) => String(sampleRate));
      const [first, second] = [ask(), ask()];
      await gateway.until("it is said", ({ conditions }) =>
        conditions.some(
          ({ type, status, reason }) => type === "SpeechReady" && status === "False" && reason === "NotAnswering",
        ),
      );
      const good = kind === "transcription" ? spokenWords : String(rates[lowVoice]);
      assert.deepEqual([await first, await second], [good, good]);
      assert.notEqual(pidOf(gateway, kind), pid);
      assert.equal(gateway.gateway.status().speech[kind]?.crashes, 1);
    });
  }
});

test("an engine that ended between two requests costs nobody an answer", async (t) => {
  const gateway = await startSpeechGateway(t);
  assert.equal(await heard(gateway), spokenWords);
  await gateway.say(lowVoice);
  const end = async (kind: "transcription" | "synthesis"): Promise<void> => {
    const pid = pidOf(gateway, kind);
    process.kill(pid, "SIGKILL");
    // The gateway may not have noticed it yet.
    await until("it is gone", async () => !(await isRunning(pid)));
  };
  await end("transcription");
  assert.equal(await heard(gateway), spokenWords);
  await end("synthesis");
  assert.equal((await gateway.say(lowVoice)).sampleRate, rates[lowVoice]);
});

test("a stop while an upload comes: its client is told that the connection ends with the answer", async (t) => {
  const gateway = await startSpeechGateway(t, { flags: ["--stop-grace", "0.3", "--drain-timeout", "0.3"] });
  assert.equal(await heard(gateway), spokenWords);
  const cut = beginUpload(gateway, 5_000);
  await gateway.until("it has its turn", ({ speech }) => speech.transcription?.inFlight === 1);
  const stopped = gateway.gateway.stop();
  assert.deepEqual(await cut, { status: 503, code: "shutting_down", connection: "close" });
  await stopped;
});

test("a stop answers those who wait at once, and those who are heard when their time is up", async (t) => {
  const gateway = await startSpeechGateway(t, { flags: ["--stop-grace", "5"] });
  assert.equal(await heard(gateway), spokenWords);
  await hang(t, pidOf(gateway, "transcription"));
  const began = performance.now();
  let firstAt = 0;
  const body = form({ file: someSound() });
  const running = beginUpload(gateway, body.length).then((answer) => {
    firstAt = performance.now() - began;
    return answer;
  });
  await gateway.until("it has its turn", ({ speech }) => speech.transcription?.inFlight === 1);
  const waiting = beginUpload(gateway, body.length);
  await gateway.until("it waits", ({ speech }) => speech.transcription?.inFlight === 2);
  const speaking = fetch(`${gateway.url}/v1/audio/speech`, postWith({ voice: lowVoice, input: "Hello." }));
  await until("it has begun", () => gateway.engine("synthesis").phase !== "stopped");
  const stopped = gateway.gateway.stop();
  assert.deepEqual(await waiting, { status: 503, code: "shutting_down", connection: "close" });
  assert.equal(firstAt, 0);
  assert.deepEqual(await running, { status: 503, code: "shutting_down", connection: "close" });
  assert.ok([200, 503].includes((await speaking).status));
  await stopped;
});
