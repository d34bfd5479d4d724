// Piper voices spoken by the real sherpa-onnx in a process of its own: heard by their length, pitch and loudness.
import assert from "node:assert/strict";
import { readFile, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { prepareVoice, sherpaCommand } from "../../src/engines/sherpa.ts";
import { createVoiceServer, type VoiceServer } from "../../src/engines/voice-server.ts";
import { speechFile, speechStream } from "../../src/speech/synthesis.ts";
import { speechPieces } from "../../src/speech/text.ts";
import { parseWav } from "../../src/speech/wav.ts";
import { cleanUp } from "../support/clean-up.ts";
import { samplesPerId, toneHertz } from "../support/piper-voice.ts";
import { isRunning } from "../support/processes.ts";
import { refusal, scratchFolder, until } from "../support/scratch.ts";
import { sherpa, writeVoice } from "../support/sherpa.ts";
import { largestJump, peak, pitch } from "../support/sound.ts";

const never = new AbortController().signal;
const plain = { voice: null, speaker: null, lengthScale: null } as const;

interface World {
  readonly folder: string;
  readonly server: VoiceServer;
  start(voice: string, model: string): Promise<void>;
}

async function world(t: TestContext, silenceLimitMs = 20_000): Promise<World> {
  const folder = await scratchFolder(t);
  const server = createVoiceServer({
    stateDir: folder,
    environment: { PATH: process.env["PATH"] },
    startTimeoutMs: 20_000,
    stopGraceMs: 2_000,
    silenceLimitMs,
    now: Date.now,
    onOutput: () => undefined,
    onChange: () => undefined,
    recycle: { requests: 1_000, bytes: 1e9 },
    warn: () => undefined,
  });
  cleanUp(t, () => server.stop());
  return {
    folder,
    server,
    start: async (voice, model) => {
      const prepared = await prepareVoice(voice, model, join(folder, "prepared"));
      await server.start(voice, sherpaCommand(await sherpa(), prepared, 1), never);
    },
  };
}

describe("sherpa-onnx with a Piper voice", { concurrency: true }, () => {
  it("speaks: the longer the text the longer the sound, as loud as Piper, at the voice's rate", async (t) => {
    const { folder, server, start } = await world(t);
    const model = await writeVoice(folder, "en_US-tone-low");
    const before = await readFile(model);
    await start("en_US-tone-low", model);
    const short = await server.speak({ ...plain, text: "Hello." }, never);
    const long = await server.speak({ ...plain, text: "Hello there, this sentence is a good deal longer." }, never);
    assert.deepEqual([short.sampleRate, short.channels], [16_000, 1]);
    assert.ok(long.samples.length > 4 * short.samples.length);
    assert.ok(Math.abs(pitch(long.samples, long.sampleRate) - toneHertz) < 3);
    assert.ok(peak(long.samples) > 32_700);
    const slow = await server.speak({ ...plain, text: "Hello.", lengthScale: 2 }, never);
    assert.equal(slow.samples.length, 2 * short.samples.length);
    // What was downloaded and verified is as it was.
    assert.deepEqual(await readFile(model), before);
    const { pid } = server.snapshot();
    await server.stop();
    assert.equal(await isRunning(pid ?? 0), false);
  });

  it("answers nobody who does not know where, and what it knows it by is not for others to read", async (t) => {
    const { folder, server } = await world(t);
    const prepared = await prepareVoice(
      "en_US-tone-low",
      await writeVoice(folder, "en_US-tone-low"),
      join(folder, "prepared"),
    );
    const command = sherpaCommand(await sherpa(), prepared, 1);
    await server.start("en_US-tone-low", command, never);
    const { pid } = server.snapshot();
    const args = (await readFile(`/proc/${pid}/cmdline`, "utf8")).split("\0");
    const { port } = JSON.parse(args[2] ?? "") as { port: number };
    const post = { method: "POST", body: JSON.stringify({ text: "Hello." }) };
    for (const path of ["", "/0123456789abcdef0123456789abcdef"]) {
      assert.equal((await fetch(`http://127.0.0.1:${port}${path}/info`)).status, 404);
      assert.equal((await fetch(`http://127.0.0.1:${port}${path}/synthesize`, post)).status, 404);
    }
    assert.match(command.basePath, /^\/[0-9a-f]{32}$/);
    assert.equal((await fetch(`http://127.0.0.1:${port}${command.basePath}/info`)).status, 200);
    assert.ok(!args.join(" ").includes(command.basePath));
  });

  it("gets pieces of which none has more sounds than it can bear, whatever the script", async (t) => {
    const { folder, server, start } = await world(t);
    await start("en_US-tone-low", await writeVoice(folder, "en_US-tone-low"));
    const ids = async (text: string): Promise<number> => {
      const { samples } = await server.speak({ ...plain, text: speechPieces(text.repeat(200))[0]?.text ?? "" }, never);
      return samples.length / samplesPerId;
    };
    assert.ok((await ids("the river runs past the old mill and ")) > 600);
    for (const text of [
      "天地玄黃",
      "เป็นมนุษย์",
      "ሰላም",
      "いろは",
      "777 ",
      "www ",
      "W.Q.X.",
      "€ ",
      "ễ ",
      "نص حكيم له ",
      "щука ",
      "αβγδ ",
    ])
      assert.ok((await ids(text)) < 3_000, `${text}: ${await ids(text)}`);
  });

  it("speaks as the speaker that it is told", async (t) => {
    const { folder, server, start } = await world(t);
    await start("en_US-three-low", await writeVoice(folder, "en_US-three-low", { speakers: 3 }));
    for (const [speaker, times] of [
      [null, 1],
      [0, 1],
      [2, 3],
    ] as const) {
      const sound = await server.speak({ ...plain, text: "One of three speaks.", speaker }, never);
      assert.ok(Math.abs(pitch(sound.samples, sound.sampleRate) - times * toneHertz) < 5);
    }
  });

  it("speaks 20,000 characters as one file without a click, and begins to at once", async (t) => {
    const { folder, server, start } = await world(t);
    await start("en_US-tone-low", await writeVoice(folder, "en_US-tone-low", { sampleRate: 22_050 }));
    const text = "The quick brown fox jumps over the lazy dog. ".repeat(445).slice(0, 20_000);
    const began = performance.now();
    const { samples, sampleRate } = parseWav(await speechFile(server, { ...plain, text }, never));
    assert.equal(sampleRate, 22_050);
    assert.ok(samples.length / sampleRate > 100, `${samples.length / sampleRate} s`);
    const own = (2 * Math.PI * toneHertz * 32_767) / sampleRate;
    assert.ok(largestJump(samples) < own + 700, `${largestJump(samples)}, ${own}`);
    const whole = performance.now() - began;
    const stream = speechStream(server, { ...plain, text }, never);
    const first = performance.now();
    await stream.next();
    await stream.next();
    assert.ok(performance.now() - first < whole / 4);
    await stream.return(undefined);
  });

  it("ends over a voice that is damaged, and only that: its last words are told", async (t) => {
    const { folder, server, start } = await world(t);
    const model = await writeVoice(folder, "en_US-tone-low");
    const prepared = await prepareVoice("en_US-tone-low", model, join(folder, "prepared"));
    await truncate(prepared.model, 300);
    const cut = await refusal(server.start("en_US-tone-low", sherpaCommand(await sherpa(), prepared, 1), never));
    assert.equal(cut.code, "engine_failed");
    assert.match(cut.message, /the speech engine ended while starting: \S/);
    await writeFile(prepared.model, await readFile(model));
    const raw = await refusal(server.start("en_US-tone-low", sherpaCommand(await sherpa(), prepared, 1), never));
    assert.match(raw.message, /ended while starting/);
    await writeVoice(folder, "en_US-tone-low", { sampleRate: 22_050 });
    await start("en_US-tone-low", model);
    assert.equal((await server.speak({ ...plain, text: "Well again." }, never)).sampleRate, 22_050);
  });

  it("that is killed while it speaks breaks off in words", async (t) => {
    const { folder, server, start } = await world(t);
    await start("en_US-tone-low", await writeVoice(folder, "en_US-tone-low"));
    const work = refusal(speechFile(server, { ...plain, text: "One more sentence. ".repeat(2_000) }, never));
    process.kill(server.snapshot().pid ?? 0, "SIGKILL");
    assert.ok((await work).status >= 502);
    await until("its end is noticed", () => server.snapshot().phase === "stopped");
    assert.match(server.snapshot().lastWords, /ended by SIGKILL/);
  });

  const linux = { skip: process.platform !== "linux" };
  it("that loses a piece and answers for its health all the while is ended as one that hangs", linux, async (t) => {
    const { folder, server } = await world(t, 2_000);
    const model = await writeVoice(folder, "en_US-tone-low");
    const prepared = await prepareVoice("en_US-tone-low", model, join(folder, "prepared"));
    await truncate(prepared.tokens, 0);
    await server.start("en_US-tone-low", sherpaCommand(await sherpa(), prepared, 1), never);
    const { pid } = server.snapshot();
    const leaving = new AbortController();
    const gone = refusal(server.speak({ ...plain, text: "Its listener leaves." }, leaving.signal));
    const waits = refusal(server.speak({ ...plain, text: "And somebody waits." }, never));
    leaving.abort();
    assert.equal((await gone).code, "cancelled");
    assert.equal((await waits).code, "upstream_failed");
    await until("its end is noticed", () => server.snapshot().phase === "stopped");
    assert.equal(await isRunning(pid ?? 0), false);
    assert.match(server.snapshot().lastWords, /computed nothing for 2 s/);
    assert.equal(server.snapshot().silentSince, null);
  });

  it("does not take a text of any size at once, and goes on", async (t) => {
    const { folder, server, start } = await world(t);
    await start("en_US-tone-low", await writeVoice(folder, "en_US-tone-low"));
    const error = await refusal(server.speak({ ...plain, text: "on and on ".repeat(10_000) }, never));
    assert.equal(error.code, "upstream_failed");
    assert.match(error.message, /answered 413 to "on and on .{0,60}": more than 65536 bytes$/);
    assert.ok((await server.speak({ ...plain, text: "Go on." }, never)).samples.length > 0);
  });
});
