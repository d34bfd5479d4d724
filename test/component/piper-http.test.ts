// Piper's servers of all generations by one client, and long texts spoken through them.
import assert from "node:assert/strict";
import { setMaxListeners } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, it, type TestContext } from "node:test";
import {
  createPiperClient,
  detectPiper,
  type PiperClient,
  type PiperGeneration,
  piperVoices,
} from "../../src/speech/piper-http.ts";
import { speechFile, speechStream } from "../../src/speech/synthesis.ts";
import { parseWav, wavFile } from "../../src/speech/wav.ts";
import { cleanUp } from "../support/clean-up.ts";
import { type PiperStandIn, secondsPerCharacter, startPiperStandIn } from "../support/piper-stand-ins.ts";
import { refusal, until } from "../support/scratch.ts";
import { largestJump, pitch } from "../support/sound.ts";

const generations = ["synthesize", "json", "text"] as const;
const plain = { voice: null, speaker: null, lengthScale: null } as const;
const never = new AbortController().signal;
// All tests of the file share it.
setMaxListeners(0, never);

interface Talking {
  readonly server: PiperStandIn;
  readonly client: PiperClient;
}

async function talking(
  t: TestContext,
  generation: PiperGeneration,
  concurrency = 2,
  endsWhenLeft = false,
): Promise<Talking> {
  const server = await startPiperStandIn(t, { generation, voices: { "en_US-low-low": 300, "en_US-high-low": 600 } });
  const client = clientOf(t, server.origin, await detectPiper(server.origin), { concurrency, endsWhenLeft });
  return { server, client };
}

function clientOf(
  t: TestContext,
  origin: string,
  generation: PiperGeneration,
  { concurrency = 2, endsWhenLeft = false, timeoutMs = 5_000 } = {},
): PiperClient {
  const client = createPiperClient({ origin, generation, concurrency, timeoutMs, endsWhenLeft });
  cleanUp(t, () => client.close());
  return client;
}

describe("a Piper server", { concurrency: true }, () => {
  for (const generation of generations) {
    it(`of the ${generation} generation is recognised without being told to speak, and speaks`, async (t) => {
      const { server, client } = await talking(t, generation);
      assert.equal(client.generation, generation);
      assert.deepEqual(server.spoken, []);
      assert.ok(server.requests.every((request) => request.startsWith("GET ")));
      const { samples, sampleRate } = await client.speak({ ...plain, text: "Grüße, Jürgen!" }, never);
      assert.deepEqual(server.spoken, ["Grüße, Jürgen!"]);
      assert.ok(Math.abs(samples.length / sampleRate - 14 * secondsPerCharacter) < 0.001);
      assert.ok(Math.abs(pitch(samples, sampleRate) - 300) < 5);
      assert.deepEqual(client.produced(), { bytes: 44 + samples.length * 2, requests: 1 });
    });
  }

  it("takes voice and pace where it can, and says so where it cannot", async (t) => {
    const { client } = await talking(t, "synthesize");
    const slow = await client.speak({ text: "abcde", voice: "en_US-high-low", speaker: 0, lengthScale: 2 }, never);
    assert.ok(Math.abs(pitch(slow.samples, slow.sampleRate) - 600) < 10);
    assert.ok(Math.abs(slow.samples.length / slow.sampleRate - 10 * secondsPerCharacter) < 0.001);
    const old = await talking(t, "text");
    for (const [wanted, param] of [
      [{ speaker: 1 }, "voice"],
      [{ lengthScale: 2 }, "speed"],
    ] as const) {
      const error = await refusal(old.client.speak({ ...plain, text: "a", ...wanted }, never));
      assert.deepEqual([error.code, error.param], ["invalid_request", param]);
    }
  });

  it("speaks as the speaker that it is told", async (t) => {
    const server = await startPiperStandIn(t, {
      generation: "synthesize",
      voices: { "en_US-two-low": 300 },
      speakers: { one: 0, two: 1 },
    });
    const client = clientOf(t, server.origin, "synthesize");
    for (const [speaker, hertz] of [
      [null, 300],
      [0, 300],
      [1, 600],
    ] as const) {
      const { samples, sampleRate } = await client.speak({ ...plain, text: "who is it?", speaker }, never);
      assert.ok(Math.abs(pitch(samples, sampleRate) - hertz) < 10);
    }
  });

  it("whose sound ends in half a sample is not believed: what follows would be noise", async (t) => {
    const server = await startPiperStandIn(t, { generation: "json", voices: { v: 300 }, oddBytes: true });
    const error = await refusal(clientOf(t, server.origin, "json").speak({ ...plain, text: "hello" }, never));
    assert.equal(error.code, "upstream_failed");
  });

  it("never gets a path for a voice, nor numbers that make no sense", async (t) => {
    const { server, client } = await talking(t, "json");
    for (const wrong of [
      { voice: "../voices/en_US-high-low" },
      { voice: "a/b" },
      { voice: "" },
      { speaker: -1 },
      { speaker: 1.5 },
      { lengthScale: 0 },
      { lengthScale: Number.NaN },
    ]) {
      assert.equal((await refusal(client.speak({ ...plain, text: "a", ...wrong }, never))).code, "invalid_request");
    }
    assert.deepEqual(server.spoken, []);
  });

  it("that answers with an error page is reported with its status and the text, not with the page", async (t) => {
    const { client } = await talking(t, "synthesize");
    const error = await refusal(client.speak({ ...plain, text: "..." }, never));
    assert.equal(error.code, "upstream_failed");
    assert.match(error.message, /answered 500 to "\.\.\."$/);
  });

  it("whose answer is no sound is not believed, although it says 200", async (t) => {
    const server = createServer((_, response) => response.end("<html>ok</html>")).listen(0, "127.0.0.1");
    cleanUp(t, () => server.close());
    await until("it listens", () => server.listening);
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    assert.equal(await detectPiper(origin), "text");
    const client = clientOf(t, origin, "text");
    assert.match((await refusal(client.speak({ ...plain, text: "a" }, never))).message, /no WAV file/);
    const silent = createServer((_, response) =>
      response.end(wavFile([{ sampleRate: 22_050, channels: 1, samples: new Int16Array() }])),
    ).listen(0, "127.0.0.1");
    cleanUp(t, () => silent.close());
    await until("it listens", () => silent.listening);
    const mute = clientOf(t, `http://127.0.0.1:${(silent.address() as AddressInfo).port}`, "json");
    const unheard = await refusal(mute.speak({ ...plain, text: "hello" }, never));
    assert.deepEqual(
      [unheard.code, unheard.message],
      ["upstream_failed", 'the speech engine made no sound of "hello"'],
    );
    server.close();
    server.closeAllConnections();
    assert.match((await refusal(client.speak({ ...plain, text: "a" }, never))).message, /broke off \(ECONNREFUSED\)/);
    assert.equal((await refusal(detectPiper(origin))).code, "upstream_failed");
  });

  it("does so many pieces at once and no more; one that is no longer wanted leaves the line", async (t) => {
    const { server, client } = await talking(t, "synthesize", 2);
    const release = server.hold();
    const leaving = new AbortController();
    const works = [1, 2, 3, 4, 5].map((n) => client.speak({ ...plain, text: `piece ${n}` }, never));
    const left = refusal(client.speak({ ...plain, text: "unwanted" }, leaving.signal));
    await until("two pieces are under way", () => server.spoken.length === 2);
    leaving.abort();
    assert.equal((await left).code, "cancelled");
    release();
    await Promise.all(works);
    assert.equal(server.most(), 2);
    assert.deepEqual(server.spoken, ["piece 1", "piece 2", "piece 3", "piece 4", "piece 5"]);
  });

  it("that goes on with a piece whose client has left keeps its turn and is counted, and no more come to it", async (t) => {
    const { server, client } = await talking(t, "synthesize", 2);
    const release = server.hold();
    const come = async (text: string): Promise<void> => {
      const leaving = new AbortController();
      const work = refusal(client.speak({ ...plain, text }, leaving.signal));
      // What is sent at once is there before an answer to what is asked later.
      await piperVoices(server.origin);
      leaving.abort();
      assert.equal((await work).code, "cancelled");
    };
    for (const text of ["a", "b", "c", "d", "e", "f"]) await come(text);
    assert.equal(client.produced().requests, 2);
    const last = client.speak({ ...plain, text: "wanted" }, never);
    release();
    assert.ok((await last).samples.length > 0);
    assert.equal(server.most(), 2);
    assert.deepEqual(server.spoken, ["a", "b", "wanted"]);
    assert.equal(client.produced().requests, 3);
    assert.ok(client.produced().bytes > 3 * 44, "what nobody heard counts too");
  });

  it("that ends a piece whose client has left takes the next one", async (t) => {
    const { server, client } = await talking(t, "synthesize", 1, true);
    const release = server.hold();
    cleanUp(t, release);
    const leaving = new AbortController();
    const work = refusal(client.speak({ ...plain, text: "a" }, leaving.signal));
    await until("it was asked", () => server.spoken.includes("a"));
    leaving.abort();
    assert.equal((await work).code, "cancelled");
    const next = client.speak({ ...plain, text: "b" }, never);
    await until("the next one was asked", () => server.spoken.includes("b"));
    release();
    await next;
    assert.equal(client.produced().requests, 2);
  });

  it("that does not answer in time is given up, and so is one whose client leaves", async (t) => {
    const { server, client } = await talking(t, "json");
    const hasty = clientOf(t, server.origin, "json", { timeoutMs: 100 });
    const release = server.hold();
    cleanUp(t, release);
    assert.match((await refusal(hasty.speak({ ...plain, text: "a" }, never))).message, /within 100 ms/);
    const leaving = new AbortController();
    const work = refusal(client.speak({ ...plain, text: "b" }, leaving.signal));
    await until("it was asked", () => server.spoken.includes("b"));
    leaving.abort();
    assert.equal((await work).code, "cancelled");
  });

  it("tells its voices, with names that lack last letters", async (t) => {
    const server = await startPiperStandIn(t, { generation: "json", voices: { "en_US-a-low": 300, "my-jarvis": 400 } });
    assert.deepEqual([...((await piperVoices(server.origin))?.keys() ?? [])], ["en_US-a-low", "my-jarvi"]);
    assert.equal(await piperVoices((await startPiperStandIn(t, { generation: "text", voices: {} })).origin), null);
  });
});

describe("a long text", { concurrency: true }, () => {
  const sentence = "The quick brown fox jumps over the lazy dog. ";

  it("of 20,000 characters becomes one file: right length, right header, no click anywhere", async (t) => {
    const { server, client } = await talking(t, "synthesize");
    const text = sentence.repeat(445).slice(0, 20_000);
    const file = await speechFile(client, { ...plain, text }, never);
    const { samples, sampleRate } = parseWav(file);
    assert.equal(sampleRate, 22_050);
    const pauses = (server.spoken.length - 1) * 0.25;
    const spoken = server.spoken.reduce((sum, piece) => sum + piece.length, 0) * secondsPerCharacter;
    assert.ok(Math.abs(samples.length / sampleRate - spoken - pauses) < 0.05);
    // Each piece begins at full scale: without care that is a step of 32,767.
    const own = (2 * Math.PI * 300 * 32_767) / 22_050;
    assert.ok(largestJump(samples) < own + 700, `${largestJump(samples)}`);
    assert.equal(server.spoken.join(" "), text.trim().replace(/(?<!\.)$/, "."));
  });

  it("is heard from the first piece on, while the next one is made", async (t) => {
    const { server, client } = await talking(t, "synthesize");
    const stream = speechStream(client, { ...plain, text: sentence.repeat(3) }, never);
    const header = await stream.next();
    assert.equal(Buffer.from(header.value ?? []).readUInt32LE(40), 0xffffffff);
    const rest: Uint8Array[] = [];
    for await (const bytes of stream) rest.push(bytes);
    assert.equal(server.spoken.length, 3);
    const heard = parseWav(Buffer.concat([Buffer.from(header.value ?? []), ...rest]));
    assert.ok(Math.abs(heard.samples.length / 22_050 - 3 * 44 * secondsPerCharacter - 0.5) < 0.01);
  });

  it("whose listener leaves is not spoken to the end", async (t) => {
    const { server, client } = await talking(t, "synthesize");
    for await (const bytes of speechStream(client, { ...plain, text: sentence.repeat(30) }, never)) {
      if (bytes.length > 44) break;
    }
    assert.ok(server.spoken.length <= 2, `${server.spoken.length} pieces`);
    const leaving = new AbortController();
    const work = refusal(speechFile(client, { ...plain, text: sentence.repeat(300) }, leaving.signal));
    await until("it speaks", () => server.spoken.length > 4);
    leaving.abort();
    assert.equal((await work).code, "cancelled");
  });

  it("without a word in it is the client's mistake", async (t) => {
    const { server, client } = await talking(t, "synthesize");
    for (const text of ["", " \n ", "...", "— — —"])
      assert.equal((await refusal(speechFile(client, { ...plain, text }, never))).code, "invalid_request");
    assert.deepEqual(server.spoken, []);
  });

  it("that breaks off at its first piece is an error before any byte", async (t) => {
    const { client } = await talking(t, "synthesize");
    await client.close();
    const stream = speechStream(client, { ...plain, text: sentence }, never);
    assert.equal((await refusal(stream.next())).code, "upstream_failed");
  });
});
