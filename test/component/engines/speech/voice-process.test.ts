// Finding a Python with Piper, and Piper as our child: started, worn out, ended, killed.
import assert from "node:assert/strict";
import { chmod, mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { findLeftovers } from "../../../../src/engines/process/leftovers.ts";
import { findPiper, piperCommand } from "../../../../src/engines/speech/piper.ts";
import { startVoice, type VoiceOptions, type VoiceRun } from "../../../../src/engines/speech/voice-process.ts";
import { cleanUp } from "../../../support/clean-up.ts";
import { patientProcess } from "../../../support/patience.ts";
import { secondsPerCharacter, writeFakePython } from "../../../support/piper-stand-ins.ts";
import { isRunning } from "../../../support/processes.ts";
import { refusal, scratchFolder } from "../../../support/scratch.ts";
import { pitch } from "../../../support/sound.ts";

const never = new AbortController().signal;
const plain = { speaker: null, lengthScale: null } as const;

async function writeScript(path: string, text: string): Promise<string> {
  await writeFile(path, text);
  await chmod(path, 0o755);
  return path;
}

interface World {
  readonly folder: string;
  readonly warnings: object[];
  /** Starts it with the voice, of which there is a file unless it is `missing`. */
  start(voice: string): Promise<VoiceRun>;
}

async function world(t: TestContext, kind = "synthesize", options: Partial<VoiceOptions> = {}): Promise<World> {
  const folder = await scratchFolder(t);
  const python = await writeFakePython(join(folder, "python3"), kind);
  const warnings: object[] = [];
  return {
    folder,
    warnings,
    start: async (voice) => {
      const model = join(folder, `${voice}.onnx`);
      if (voice !== "missing") await writeFile(model, "");
      const run = await startVoice(
        piperCommand(python, { model, voicesDir: folder }),
        {
          stateDir: folder,
          environment: {},
          ...patientProcess,
          warn: (_message, fields) => void warnings.push(fields),
          ...options,
        },
        never,
      );
      cleanUp(t, () => run.process.stop());
      return run;
    },
  };
}

describe("a Python with Piper", { concurrency: true }, () => {
  it("is found in PATH, the first that has it, as the link that it may be", async (t) => {
    const folder = await scratchFolder(t);
    for (const name of ["a", "b", "c"]) await mkdir(join(folder, name));
    await writeFakePython(join(folder, "a", "python3"), "nothing");
    await writeFakePython(join(folder, "b", "real"), "json");
    await symlink(join(folder, "b", "real"), join(folder, "b", "python3"));
    const environment = { PATH: `relative::${join(folder, "a")}:${join(folder, "c")}:${join(folder, "b")}` };
    assert.equal(await findPiper({ explicit: undefined, environment }), join(folder, "b", "python3"));
  });

  it("is found by the first line of a piper command", async (t) => {
    const folder = await scratchFolder(t);
    await mkdir(join(folder, "bin"));
    const python = await writeFakePython(join(folder, "python3.13"), "synthesize");
    const command = await writeScript(join(folder, "bin", "piper"), `#!${python}\nimport sys\n`);
    const environment = { PATH: join(folder, "bin") };
    assert.equal(await findPiper({ explicit: undefined, environment }), python);
    assert.equal(await findPiper({ explicit: command, environment: {} }), python);
    await writeScript(command, `#!/bin/sh\n'''exec' "${python}" "$0" "$@"\n' '''\n`);
    assert.equal(await findPiper({ explicit: undefined, environment }), python);
  });

  it("that is not there, or lacks a part, is said with what to do", async (t) => {
    const folder = await scratchFolder(t);
    const find = (explicit?: string) => refusal(findPiper({ explicit, environment: { PATH: folder } }));
    assert.match(
      (await find()).message,
      /no Python in PATH that has Piper with its HTTP server: install it with `pipx/,
    );
    await writeFakePython(join(folder, "python3"), "no-flask");
    assert.equal((await find()).code, "engine_missing");
    await mkdir(join(folder, "a b"));
    const spaced = await writeFakePython(join(folder, "a b", "python3"), "nothing");
    assert.equal(
      (await find(spaced)).message,
      `${spaced} has no Piper with its HTTP server: install it with \`'${spaced}' -m pip install 'piper-tts[http]'\``,
    );
    assert.match(
      (await find(join(folder, "none"))).message,
      /none is no Python that runs here: name one that has Piper$/,
    );
  });
});

describe("Piper as a child", { concurrency: true }, () => {
  it("speaks with the voice that it was started with", async (t) => {
    const { folder, start, warnings } = await world(t);
    const { process: child, speak } = await start("en_US-tiny-low");
    const sound = await speak({ ...plain, text: "hello there" });
    assert.ok(Math.abs(pitch(sound.samples, sound.sampleRate) - 30 * 14) < 8);
    assert.ok(Math.abs(sound.samples.length / sound.sampleRate - 11 * secondsPerCharacter) < 0.001);
    // After a kill of the gateway the next one finds it by its mark.
    assert.deepEqual(await findLeftovers(folder), process.platform === "linux" ? [child.pid] : []);
    await child.stop();
    assert.equal(await isRunning(child.pid), false);
    assert.equal(await child.ended, null);
    assert.deepEqual(warnings, []);
  });

  it("that cannot start says why in one line without a path; the log has all of it", async (t) => {
    const { folder, start, warnings } = await world(t);
    const error = await refusal(start("missing"));
    assert.equal(error.code, "engine_failed");
    assert.equal(
      error.message,
      "the speech engine ended while starting: ValueError: Unable to find voice: missing.onnx (use piper.download_voices)",
    );
    assert.match(JSON.stringify(warnings), new RegExp(`${folder}/missing\\.onnx`));
  });

  it("before 1.5.0 is said to be too old, and ends", async (t) => {
    for (const generation of ["text", "json"]) {
      const { folder, start } = await world(t, generation);
      assert.match((await refusal(start("en_US-tiny-low"))).message, /older than 1\.5\.0/);
      assert.deepEqual(await findLeftovers(folder), []);
    }
  });

  it("is worn after so many pieces", async (t) => {
    const { start } = await world(t, "synthesize", { piecesPerProcess: 2 });
    const { speak, isWorn } = await start("en_US-tiny-low");
    await speak({ ...plain, text: "once" });
    assert.equal(isWorn?.(), false);
    await speak({ ...plain, text: "again" });
    assert.equal(isWorn?.(), true);
  });

  it("that is killed while it speaks breaks off in words", async (t) => {
    const { start } = await world(t);
    const { process: child, speak } = await start("en_US-tiny-low");
    process.kill(child.pid, "SIGSTOP");
    const work = refusal(speak({ ...plain, text: "never heard" }));
    process.kill(child.pid, "SIGKILL");
    const error = await work;
    assert.equal(error.code, "upstream_failed");
    assert.ok(error.cause !== undefined);
    assert.match((await child.ended) ?? "", /^it was ended by SIGKILL/);
  });

  it("that loses a piece and answers every probe is ended", async (t) => {
    const { start } = await world(t, "synthesize+60000", { pieceTimeoutMs: 200 });
    const { process: child, speak } = await start("en_US-tiny-low");
    assert.equal((await refusal(speak({ ...plain, text: "never heard" }))).code, "upstream_failed");
    assert.equal(await isRunning(child.pid), false);
    assert.match((await child.ended) ?? "", /did not speak a piece of text within 0\.2 s and was ended/);
  });

  it("that answers nothing is noticed and ended", async (t) => {
    let changes = 0;
    const { start } = await world(t, "synthesize", { silenceLimitMs: 1_000, onChange: () => void changes++ });
    const { process: child } = await start("en_US-tiny-low");
    process.kill(child.pid, "SIGSTOP");
    assert.match((await child.ended) ?? "", /did not answer for 1 s and was ended/);
    assert.equal(changes, 1);
  });
});
