// Which engine speaks: a Python with Piper where there is one, else the embedded one; and what is said where neither does.
import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import type { SpeechEngine } from "../../src/engines/speech/speech-engine.ts";
import { createSynthesisEngine, type SpeechEngineChoice } from "../../src/engines/speech/synthesis-engine.ts";
import type { VoiceRun } from "../../src/engines/speech/voice-process.ts";
import { cleanUp } from "../support/clean-up.ts";
import { enginesDir } from "../support/engine.ts";
import { patienceMs } from "../support/patience.ts";
import { startsOf, writeFakePython } from "../support/piper-stand-ins.ts";
import { toneHertz } from "../support/piper-voice.ts";
import { refusal, scratchFolder } from "../support/scratch.ts";
import { sherpa, writeVoice } from "../support/sherpa.ts";
import { pitch } from "../support/sound.ts";

const never = new AbortController().signal;
const voice = "en_US-tone-low";
const installCommand = "model-gateway engine install sherpa";

interface World {
  /** In PATH; nobody has written it yet. */
  readonly python: string;
  readonly engine: SpeechEngine<VoiceRun>;
  /** Which of the two speaks, told by its tone. */
  speaker(): Promise<string>;
  /** ms go by. */
  pass(ms: number): void;
}

interface Wanted {
  readonly engine?: SpeechEngineChoice;
  /** Whether `--piper` names the Python. */
  readonly named?: boolean;
  readonly embedded?: boolean;
}

async function world(t: TestContext, { engine = "auto", named = false, embedded = true }: Wanted): Promise<World> {
  const folder = await scratchFolder(t);
  await sherpa();
  const python = join(folder, "python3");
  const voicesDir = join(folder, "voices");
  await mkdir(voicesDir);
  await writeVoice(voicesDir, voice);
  let now = Date.now();
  const synthesis = createSynthesisEngine({
    stateDir: folder,
    environment: { PATH: folder },
    startTimeoutMs: patienceMs,
    stopGraceMs: 2_000,
    silenceLimitMs: patienceMs,
    idleMs: 1e9,
    drainMs: 1_000,
    now: () => now,
    onOutput: () => undefined,
    onChange: () => undefined,
    onFound: () => undefined,
    warn: () => undefined,
    engine,
    explicit: named ? python : undefined,
    installCommand,
    enginesDir: embedded ? enginesDir : join(folder, "engines"),
    voicesDir,
    copiesDir: join(folder, "copies"),
  });
  cleanUp(t, () => synthesis.close());
  return {
    python,
    engine: synthesis,
    pass: (ms) => {
      now += ms;
    },
    speaker: async () => {
      const text = "Hello there, who is speaking?";
      const use = synthesis.use(voice);
      assert.ok(use);
      const sound = await use.run.speak({ text, speaker: null, lengthScale: null });
      use.release();
      const hertz = pitch(sound.samples, sound.sampleRate);
      return Math.abs(hertz - toneHertz) < 5
        ? "embedded"
        : Math.abs(hertz - 30 * voice.length) < 5
          ? "piper"
          : `${hertz}`;
    },
  };
}

describe("what speaks", { concurrency: true }, () => {
  it("is a Python with Piper where there is one, although the embedded engine is installed", async (t) => {
    const { python, engine, speaker } = await world(t, {});
    await writeFakePython(python, "synthesize");
    assert.equal((await engine.observe(voice)).problem, null);
    await engine.start(voice, never);
    assert.equal(await speaker(), "piper");
  });

  it("is the embedded engine where it is asked for, and no Python is started", async (t) => {
    const { python, engine, speaker } = await world(t, { engine: "embedded" });
    await writeFakePython(python, "synthesize");
    await engine.observe(voice);
    await engine.start(voice, never);
    assert.equal(await speaker(), "embedded");
    assert.equal(await startsOf(python), 0);
  });

  it("is the embedded engine where no Python has Piper, which is not asked again and again", async (t) => {
    const { python, engine, speaker, pass } = await world(t, {});
    await writeFakePython(python, "nothing");
    for (let round = 0; round < 3; round++) {
      for (let look = 0; look < 5; look++) assert.equal((await engine.observe(voice)).problem, null);
      await engine.start(voice, never);
      assert.equal(await speaker(), "embedded");
      await engine.stop(never);
    }
    assert.equal(await startsOf(python), 1);
    // Long after, a look at the world starts none either: only who needs the engine has one looked for.
    pass(3_600_000);
    for (let look = 0; look < 5; look++) await engine.observe(voice);
    assert.equal(await startsOf(python), 1);
  });

  it("changes to a Piper that came later with a later start, and never under way", async (t) => {
    const { python, engine, speaker, pass } = await world(t, {});
    await engine.observe(voice);
    await engine.start(voice, never);
    const { pid } = engine.snapshot();
    await writeFakePython(python, "synthesize");
    pass(60_000);
    await engine.observe(voice);
    assert.deepEqual([await speaker(), engine.snapshot().pid], ["embedded", pid]);
    assert.equal(await startsOf(python), 0);
    await engine.start(voice, never);
    assert.equal(await speaker(), "piper");
  });

  it("is said where it is missing, with what mends it", async (t) => {
    const problem = async (wanted: Wanted, what: string | null): Promise<string> => {
      const { python, engine } = await world(t, wanted);
      if (what !== null) await writeFakePython(python, what);
      const error = await refusal(engine.start(voice, never));
      assert.equal(error.code, "engine_missing");
      assert.equal((await engine.observe(voice)).problem, error.message);
      return error.message.replaceAll(python, "PYTHON");
    };
    const install = `\`${installCommand}\``;
    const pip = "install it with `PYTHON -m pip install 'piper-tts[http]'`";
    const none =
      "there is no Python in PATH that has Piper with its HTTP server: install it with `pipx install 'piper-tts[http]'`";
    const unfit = "PYTHON has no Piper with its HTTP server";
    assert.equal(await problem({ embedded: false }, null), `${none}, or run ${install}`);
    assert.equal(await problem({ engine: "piper" }, "nothing"), none);
    const named = { named: true };
    assert.equal(await problem(named, "nothing"), `${unfit}: ${pip}, or leave out --piper`);
    assert.equal(
      await problem(named, null),
      "PYTHON is no Python that runs here: name one that has Piper, or leave out --piper",
    );
    assert.equal(await problem({ ...named, engine: "piper" }, "nothing"), `${unfit}: ${pip}`);
    assert.equal(
      await problem({ engine: "embedded", embedded: false }, "synthesize"),
      `the embedded speech engine is not installed: run ${install}`,
    );
  });
});
