// Piper's server: whether it is recent enough, and a piece of text spoken.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, it, type TestContext } from "node:test";
import { type PieceRequest, requireSpeech, speakPiece } from "../../../../src/engines/speech/piper-http.ts";
import { type Pcm, wavFile } from "../../../../src/speech/wav.ts";
import { cleanUp } from "../../../support/clean-up.ts";
import { type PiperStandIn, secondsPerCharacter, startPiperStandIn } from "../../../support/piper-stand-ins.ts";
import { refusal, until } from "../../../support/scratch.ts";
import { pitch } from "../../../support/sound.ts";

const plain = { speaker: null, lengthScale: null } as const;
const never = new AbortController().signal;

interface Talking {
  readonly server: PiperStandIn;
  speak(piece: PieceRequest, signal?: AbortSignal): Promise<Pcm>;
}

async function talking(
  t: TestContext,
  options: Partial<Parameters<typeof startPiperStandIn>[1]> = {},
): Promise<Talking> {
  const server = await startPiperStandIn(t, { generation: "synthesize", voices: { "en_US-low-low": 300 }, ...options });
  await requireSpeech(server.origin, never);
  return { server, speak: (piece, signal = never) => speakPiece(server.origin, piece, signal) };
}

/** What answers everything with these bytes. */
async function answering(t: TestContext, body: string | Uint8Array): Promise<string> {
  const server = createServer((_, response) => response.end(body)).listen(0, "127.0.0.1");
  cleanUp(t, () => server.close());
  await until("it listens", () => server.listening);
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe("a Piper server", { concurrency: true }, () => {
  it("is told without being made to speak, and speaks", async (t) => {
    const { server, speak } = await talking(t);
    assert.deepEqual(server.spoken, []);
    assert.ok(server.requests.every((request) => request.startsWith("GET ")));
    const { samples, sampleRate } = await speak({ ...plain, text: "Grüße, Jürgen!" });
    assert.deepEqual(server.spoken, ["Grüße, Jürgen!"]);
    assert.ok(Math.abs(samples.length / sampleRate - 14 * secondsPerCharacter) < 0.001);
    assert.ok(Math.abs(pitch(samples, sampleRate) - 300) < 5);
  });

  it("before 1.5.0 is refused, and not made to speak", async (t) => {
    for (const generation of ["text", "json"] as const) {
      const server = await startPiperStandIn(t, { generation, voices: { "en_US-low-low": 300 } });
      const error = await refusal(requireSpeech(server.origin, never));
      assert.deepEqual([error.code, server.spoken], ["engine_failed", []]);
      assert.match(error.message, /older than 1\.5\.0/);
    }
  });

  it("takes speaker and pace", async (t) => {
    const speakers = { one: 0, two: 1 };
    const { speak } = await talking(t, { speakers });
    const slow = await speak({ text: "abcde", speaker: 1, lengthScale: 2 });
    assert.ok(Math.abs(pitch(slow.samples, slow.sampleRate) - 600) < 10);
    assert.ok(Math.abs(slow.samples.length / slow.sampleRate - 10 * secondsPerCharacter) < 0.001);
  });

  it("whose sound ends in half a sample is not believed: what follows would be noise", async (t) => {
    const { speak } = await talking(t, { oddBytes: true });
    assert.equal((await refusal(speak({ ...plain, text: "hello" }))).code, "upstream_failed");
  });

  it("that answers with an error page is reported with its status and the text, not with the page", async (t) => {
    const { speak } = await talking(t);
    const error = await refusal(speak({ ...plain, text: "..." }));
    assert.deepEqual([error.code, error.cause], ["upstream_failed", undefined]);
    assert.match(error.message, /answered 500 to "\.\.\."$/);
  });

  it("whose answer is no sound is not believed, although it says 200", async (t) => {
    const page = await answering(t, "<html>ok</html>");
    const piece = { ...plain, text: "hello" };
    const noWav = await refusal(speakPiece(page, piece, never));
    assert.match(noWav.message, /no WAV file/);
    const empty = wavFile([{ sampleRate: 22_050, channels: 1, samples: new Int16Array() }]);
    const mute = await answering(t, empty);
    const unheard = await refusal(speakPiece(mute, piece, never));
    assert.equal(unheard.message, 'the speech engine made no sound of "hello"');
  });

  it("that is not there, or does not answer in time, broke off", async (t) => {
    const { server, speak } = await talking(t);
    const release = server.hold();
    cleanUp(t, release);
    const late = await refusal(speak({ ...plain, text: "a" }, AbortSignal.timeout(100)));
    assert.equal(late.code, "upstream_failed");
    assert.ok(late.cause !== undefined);
    const gone = "http://127.0.0.1:1";
    assert.match(
      (await refusal(speakPiece(gone, { ...plain, text: "a" }, never))).message,
      /broke off \(ECONNREFUSED\)/,
    );
    assert.equal((await refusal(requireSpeech(gone, never))).code, "upstream_failed");
  });
});
