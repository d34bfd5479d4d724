// Finding a Python with Piper, and Piper as our child: started, replaced before it grows, ended, killed.
import assert from "node:assert/strict";
import { chmod, mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { findLeftovers } from "../../src/engines/leftovers.ts";
import { findPiper, piperCommand } from "../../src/engines/piper.ts";
import { createVoiceServer, type VoiceServer } from "../../src/engines/voice-server.ts";
import { cleanUp } from "../support/clean-up.ts";
import { secondsPerCharacter, writeFakePython } from "../support/piper-stand-ins.ts";
import { isRunning } from "../support/processes.ts";
import { refusal, scratchFolder, until } from "../support/scratch.ts";
import { pitch } from "../support/sound.ts";

const never = new AbortController().signal;
const plain = { voice: null, speaker: null, lengthScale: null } as const;

async function writeScript(path: string, text: string): Promise<string> {
  await writeFile(path, text);
  await chmod(path, 0o755);
  return path;
}

interface World {
  readonly folder: string;
  readonly server: VoiceServer;
  readonly warnings: string[];
  /** Starts it with the voice, of which there is a file. */
  start(voice: string): Promise<void>;
}

async function world(t: TestContext, kind = "synthesize", recycle = { requests: 100, bytes: 1e9 }): Promise<World> {
  const folder = await scratchFolder(t);
  const python = await writeFakePython(join(folder, "python3"), kind);
  const warnings: string[] = [];
  const server = createVoiceServer({
    stateDir: folder,
    environment: {},
    startTimeoutMs: 10_000,
    stopGraceMs: 2_000,
    silenceLimitMs: 20_000,
    now: Date.now,
    onOutput: () => undefined,
    onChange: () => undefined,
    recycle,
    warn: (message) => void warnings.push(message),
  });
  cleanUp(t, () => server.stop());
  return {
    folder,
    server,
    warnings,
    start: async (voice) => {
      const model = join(folder, `${voice}.onnx`);
      if (voice !== "missing") await writeFile(model, "");
      await server.start(voice, piperCommand({ python }, { model, voicesDir: folder }), never);
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
    assert.deepEqual(await findPiper({ explicit: undefined, environment }), { python: join(folder, "b", "python3") });
  });

  it("is found by the first line of a piper command", async (t) => {
    const folder = await scratchFolder(t);
    await mkdir(join(folder, "bin"));
    const python = await writeFakePython(join(folder, "python3.13"), "synthesize");
    const command = await writeScript(join(folder, "bin", "piper"), `#!${python}\nimport sys\n`);
    const environment = { PATH: join(folder, "bin") };
    assert.deepEqual(await findPiper({ explicit: undefined, environment }), { python });
    assert.deepEqual(await findPiper({ explicit: command, environment: {} }), { python });
    await writeScript(command, `#!/bin/sh\n'''exec' "${python}" "$0" "$@"\n' '''\n`);
    assert.deepEqual(await findPiper({ explicit: undefined, environment }), { python });
  });

  it("that is not there, or lacks a part, is said with what to do", async (t) => {
    const folder = await scratchFolder(t);
    const find = (explicit?: string) => refusal(findPiper({ explicit, environment: { PATH: folder } }));
    assert.match((await find()).message, /no Python with Piper in PATH: install it with `pipx install/);
    await writeFakePython(join(folder, "python3"), "no-flask");
    const error = await find();
    assert.equal(error.code, "engine_missing");
    assert.match(error.message, /lacks its HTTP server's part \(flask\)/);
    assert.match(error.message, /: install it with `\S+python3 -m pip install 'piper-tts\[http\]'`$/);
    await mkdir(join(folder, "a b"));
    const spaced = await writeFakePython(join(folder, "a b", "python3"), "nothing");
    assert.equal(
      (await find(spaced)).message,
      `${spaced} has no Piper: install it with \`'${spaced}' -m pip install 'piper-tts[http]'\``,
    );
    assert.match(
      (await find(join(folder, "none"))).message,
      /none is no Python that runs here: name one that has Piper$/,
    );
  });
});

describe("Piper as a child", { concurrency: true }, () => {
  for (const generation of ["synthesize", "json", "text"]) {
    it(`of the ${generation} generation speaks with the voice that it was started with`, async (t) => {
      const { folder, server, start } = await world(t, generation);
      assert.equal((await refusal(server.speak({ ...plain, text: "a" }, never))).code, "engine_failed");
      await start("en_US-tiny-low");
      // Told another name, Piper would take any voice; ours is not told.
      const sound = await server.speak({ ...plain, text: "hello there", voice: "en_US-other-low" }, never);
      assert.ok(Math.abs(pitch(sound.samples, sound.sampleRate) - 30 * 14) < 8);
      assert.ok(Math.abs(sound.samples.length / sound.sampleRate - 11 * secondsPerCharacter) < 0.001);
      const { phase, voice, pid } = server.snapshot();
      assert.deepEqual([phase, voice], ["ready", "en_US-tiny-low"]);
      // After a kill of the gateway the next one finds it by its mark.
      assert.deepEqual(await findLeftovers(folder), process.platform === "linux" ? [pid] : []);
      await server.stop();
      assert.equal(await isRunning(pid ?? 0), false);
      assert.equal(server.snapshot().phase, "stopped");
    });
  }

  it("that cannot start ends with its last words", async (t) => {
    const { server, start } = await world(t);
    const error = await refusal(start("missing"));
    assert.equal(error.code, "engine_failed");
    assert.match(error.message, /the speech engine ended while starting: ValueError: Unable to find voice/);
    assert.equal(server.snapshot().phase, "stopped");
    await start("en_US-tiny-low");
    assert.equal((await refusal(start("en_US-tiny-low"))).code, "internal");
  });

  it("is replaced by a fresh process after so many pieces, while nobody waits and no piece is lost", async (t) => {
    const { server, start, warnings } = await world(t, "synthesize", { requests: 4, bytes: 1e9 });
    await start("en_US-tiny-low");
    const { pid } = server.snapshot();
    let pieces = 0;
    await until("it was replaced", async () => {
      await Promise.all([1, 2, 3].map(() => server.speak({ ...plain, text: "again" }, never)));
      pieces += 3;
      return server.snapshot().recycled >= 1;
    });
    assert.ok(pieces >= 4);
    assert.notEqual(server.snapshot().pid, pid);
    await until("the old one is gone", async () => !(await isRunning(pid ?? 0)));
    await server.speak({ ...plain, text: "and on" }, never);
    assert.deepEqual([server.snapshot().phase, server.snapshot().crashes, warnings], ["ready", [], []]);
  });

  it("is replaced also where its listeners leave: what it has begun counts", async (t) => {
    const { server, start } = await world(t, "synthesize+150+50", { requests: 3, bytes: 1e9 });
    await start("en_US-tiny-low");
    const leaving = new AbortController();
    const left = ["a", "b"].map((text) => refusal(server.speak({ ...plain, text }, leaving.signal)));
    const waits = server.speak({ ...plain, text: "c" }, never);
    setImmediate(() => leaving.abort());
    for (const work of left) assert.equal((await work).code, "cancelled");
    assert.ok((await waits).samples.length > 0);
    await until("it is replaced", () => server.snapshot().recycled === 1);
  });

  it("is replaced after so many bytes, and a stop ends both", async (t) => {
    const { server, start } = await world(t, "synthesize", { requests: 1e9, bytes: 1_000 });
    await start("en_US-tiny-low");
    await server.speak({ ...plain, text: "one that is long enough" }, never);
    await server.stop();
    assert.equal(server.snapshot().phase, "stopped");
  });

  it("that is killed while it speaks breaks off in words, and can be started again", async (t) => {
    const { server, start } = await world(t);
    await start("en_US-tiny-low");
    process.kill(server.snapshot().pid ?? 0, "SIGSTOP");
    const work = refusal(server.speak({ ...plain, text: "never heard" }, never));
    process.kill(server.snapshot().pid ?? 0, "SIGKILL");
    assert.equal((await work).code, "upstream_failed");
    await until("its end is noticed", () => server.snapshot().phase === "stopped");
    assert.equal(server.snapshot().crashes.length, 1);
    assert.match(server.snapshot().lastWords, /ended by SIGKILL/);
    await start("en_US-tiny-low");
    assert.ok((await server.speak({ ...plain, text: "heard" }, never)).samples.length > 0);
    assert.equal(server.snapshot().crashes.length, 1);
  });
});
