// Piper voices spoken by the real sherpa-onnx in a process of its own: heard by their length, pitch and loudness.
import assert from "node:assert/strict";
import { readFile, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { sherpaCommand } from "../../src/engines/speech/sherpa.ts";
import { prepareVoice } from "../../src/engines/speech/sherpa-voice.ts";
import { startVoice, type VoiceOptions, type VoiceRun } from "../../src/engines/speech/voice-process.ts";
import { speechPieces } from "../../src/speech/text.ts";
import { cleanUp } from "../support/clean-up.ts";
import { patientProcess } from "../support/patience.ts";
import { samplesPerId, toneHertz } from "../support/piper-voice.ts";
import { isRunning } from "../support/processes.ts";
import { refusal, scratchFolder } from "../support/scratch.ts";
import { sherpa, writeVoice } from "../support/sherpa.ts";
import { peak, pitch } from "../support/sound.ts";

const never = new AbortController().signal;
const plain = { speaker: null, lengthScale: null } as const;

interface World {
  readonly folder: string;
  start(voice: string, model: string): Promise<VoiceRun>;
  run(command: ReturnType<typeof sherpaCommand>): Promise<VoiceRun>;
}

async function world(t: TestContext, options: Partial<VoiceOptions> = {}): Promise<World> {
  const folder = await scratchFolder(t);
  const run = async (command: ReturnType<typeof sherpaCommand>): Promise<VoiceRun> => {
    const started = await startVoice(
      command,
      {
        stateDir: folder,
        environment: { PATH: process.env["PATH"] },
        ...patientProcess,
        ...options,
      },
      never,
    );
    cleanUp(t, () => started.process.stop());
    return started;
  };
  return {
    folder,
    run,
    start: async (voice, model) => {
      const prepared = await prepareVoice(voice, model, join(folder, "prepared"));
      return run(sherpaCommand(await sherpa(), prepared, 1));
    },
  };
}

describe("sherpa-onnx with a Piper voice", { concurrency: true }, () => {
  it("speaks: the longer the text the longer the sound, as loud as Piper, at the voice's rate", async (t) => {
    const { folder, start } = await world(t);
    const model = await writeVoice(folder, "en_US-tone-low");
    const before = await readFile(model);
    const { process: child, speak } = await start("en_US-tone-low", model);
    const short = await speak({ ...plain, text: "Hello." });
    const long = await speak({ ...plain, text: "Hello there, this sentence is a good deal longer." });
    assert.deepEqual([short.sampleRate, short.channels], [16_000, 1]);
    assert.ok(long.samples.length > 4 * short.samples.length);
    assert.ok(Math.abs(pitch(long.samples, long.sampleRate) - toneHertz) < 3);
    assert.ok(peak(long.samples) > 32_700);
    const slow = await speak({ ...plain, text: "Hello.", lengthScale: 2 });
    assert.equal(slow.samples.length, 2 * short.samples.length);
    // What was downloaded and verified is as it was.
    assert.deepEqual(await readFile(model), before);
    await child.stop();
    assert.equal(await isRunning(child.pid), false);
  });

  it("answers nobody who does not know where, and what it knows it by is not for others to read", async (t) => {
    const { folder, run } = await world(t);
    const model = await writeVoice(folder, "en_US-tone-low");
    const command = sherpaCommand(await sherpa(), await prepareVoice("en_US-tone-low", model, join(folder, "copy")), 1);
    const { process: child } = await run(command);
    const args = (await readFile(`/proc/${child.pid}/cmdline`, "utf8")).split("\0");
    const post = { method: "POST", body: JSON.stringify({ text: "Hello." }) };
    for (const path of ["", "/0123456789abcdef0123456789abcdef"]) {
      assert.equal((await fetch(`${child.origin}${path}/info`)).status, 404);
      assert.equal((await fetch(`${child.origin}${path}/synthesize`, post)).status, 404);
    }
    assert.match(command.basePath, /^\/[0-9a-f]{32}$/);
    assert.equal((await fetch(`${child.origin}${command.basePath}/info`)).status, 200);
    assert.ok(!args.join(" ").includes(command.basePath));
  });

  it("gets pieces of which none has more sounds than it can bear, whatever the script", async (t) => {
    const { folder, start } = await world(t);
    const { speak } = await start("en_US-tone-low", await writeVoice(folder, "en_US-tone-low"));
    const ids = async (text: string): Promise<number> => {
      const { samples } = await speak({ ...plain, text: speechPieces(text.repeat(200))[0]?.text ?? "" });
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
    const { folder, start } = await world(t);
    const { speak } = await start("en_US-three-low", await writeVoice(folder, "en_US-three-low", { speakers: 3 }));
    for (const [speaker, times] of [
      [null, 1],
      [0, 1],
      [2, 3],
    ] as const) {
      const sound = await speak({ ...plain, text: "One of three speaks.", speaker });
      assert.ok(Math.abs(pitch(sound.samples, sound.sampleRate) - times * toneHertz) < 5);
    }
  });

  it("ends over a voice that is damaged, and says why in one line without a path", async (t) => {
    const { folder, start, run } = await world(t);
    const model = await writeVoice(folder, "en_US-tone-low");
    const prepared = await prepareVoice("en_US-tone-low", model, join(folder, "prepared"));
    for (const damage of [
      () => truncate(prepared.model, 300),
      async () => writeFile(prepared.model, await readFile(model)),
    ]) {
      await damage();
      const error = await refusal(run(sherpaCommand(await sherpa(), prepared, 1)));
      assert.equal(error.code, "engine_failed");
      assert.match(error.message, /^the speech engine ended while starting: \S/);
      assert.ok(!/[\n]|\/\w+\//.test(error.message), error.message);
    }
    await writeVoice(folder, "en_US-tone-low", { sampleRate: 22_050 });
    const { speak } = await start("en_US-tone-low", model);
    assert.equal((await speak({ ...plain, text: "Well again." })).sampleRate, 22_050);
  });

  it("that is killed while it speaks breaks off in words", async (t) => {
    const { folder, start } = await world(t);
    const { process: child, speak } = await start("en_US-tone-low", await writeVoice(folder, "en_US-tone-low"));
    const work = refusal(speak({ ...plain, text: "One more sentence. ".repeat(2_000) }));
    process.kill(child.pid, "SIGKILL");
    assert.equal((await work).code, "upstream_failed");
    assert.match((await child.ended) ?? "", /ended by SIGKILL/);
  });

  it("that loses a piece and answers for its health all the while is ended", async (t) => {
    const { folder, run } = await world(t, { pieceTimeoutMs: 2_000 });
    const model = await writeVoice(folder, "en_US-tone-low");
    const prepared = await prepareVoice("en_US-tone-low", model, join(folder, "prepared"));
    await truncate(prepared.tokens, 0);
    const { process: child, speak } = await run(sherpaCommand(await sherpa(), prepared, 1));
    assert.equal((await refusal(speak({ ...plain, text: "Somebody waits." }))).code, "upstream_failed");
    assert.equal(await isRunning(child.pid), false);
    assert.match((await child.ended) ?? "", /did not speak a piece of text within 2 s/);
  });

  it("does not take a text of any size at once, and goes on", async (t) => {
    const { folder, start } = await world(t);
    const { speak } = await start("en_US-tone-low", await writeVoice(folder, "en_US-tone-low"));
    const error = await refusal(speak({ ...plain, text: "on and on ".repeat(10_000) }));
    assert.equal(error.code, "upstream_failed");
    assert.match(error.message, /answered 413 to "on and on .{0,60}": more than 65536 bytes$/);
    assert.ok((await speak({ ...plain, text: "Go on." })).samples.length > 0);
  });
});
