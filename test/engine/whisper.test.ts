// The real whisper-server as our child: what it hears goes through untouched, what goes wrong is said in words.
import assert from "node:assert/strict";
import { chmod, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { describe, it, type TestContext } from "node:test";
import { inspect } from "node:util";
import { whisperServer } from "../support/engine.ts";
import { isRunning } from "../support/processes.ts";
import { refusal, scratchFolder, until } from "../support/scratch.ts";
import { wavSaying } from "../support/sounds.ts";
import { form, heard, someSound, startedWhisper, upload, whisperFor, writeWhisperModel } from "../support/whisper.ts";

const never = new AbortController().signal;

describe("whisper-server", { concurrency: true }, () => {
  it("is ready once its model is loaded, and what it answers is the answer", async (t) => {
    const { whisper } = await startedWhisper(t);
    const { phase, pid, model } = whisper.snapshot();
    assert.equal(phase, "ready");
    assert.match(model ?? "", /ggml-said\.en\.bin$/);
    assert.equal(await heard(whisper, { model: "whisper-1", file: someSound() }), '{"text":" hello from the ear\\n"}');
    const text = await whisper.transcribe(upload(form({ file: someSound(), response_format: "vtt" })));
    assert.equal(text.contentType, "text/vtt");
    assert.match(Buffer.from(text.body).toString(), /^WEBVTT\n/);
    await whisper.stop();
    assert.equal(await isRunning(pid ?? 0), false);
    assert.deepEqual([whisper.snapshot().phase, whisper.snapshot().crashes], ["stopped", []]);
    assert.equal((await refusal(heard(whisper))).code, "engine_failed");
  });

  it("is started again with another model", async (t) => {
    const { whisper, folder } = await startedWhisper(t, "the first one");
    const second = await writeWhisperModel(folder, "the second one", "ggml-second.en.bin");
    assert.equal((await refusal(whisper.start(await whisperServer(), second, never))).code, "internal");
    await whisper.stop();
    await whisper.start(await whisperServer(), second, never);
    assert.equal(await heard(whisper), '{"text":" the second one\\n"}');
  });

  it("that cannot read an upload says which forms it reads, and that there is no ffmpeg", async (t) => {
    const { whisper, folder } = await whisperFor(t, { path: "/nowhere" });
    await whisper.start(await whisperServer(), await writeWhisperModel(folder, "x"), never);
    assert.equal(whisper.snapshot().converts, false);
    for (const file of [Buffer.from("no sound"), someSound().subarray(0, 44)]) {
      const error = await refusal(heard(whisper, { file }));
      assert.equal(error.code, "invalid_request");
      assert.match(error.message, /field `file` that holds sound as WAV, FLAC or MP3; other forms need ffmpeg/);
    }
    // Damaged ADPCM, over which it fails.
    for (const tag of [2, 17]) {
      const error = await refusal(heard(whisper, { file: wavSaying({ tag }) }));
      assert.deepEqual([error.code, error.param], ["invalid_request", "file"]);
    }
    const astray = { ...upload(form({ file: someSound() })), contentType: "multipart/form-data; boundary=another" };
    const lost = await refusal(whisper.transcribe(astray));
    assert.deepEqual([lost.code, /does not begin with the boundary/.test(lost.message)], ["invalid_request", true]);
    const small = { ...upload(form({ model: "x" })), contentType: "multipart/form-data; boundary=another" };
    assert.equal((await refusal(whisper.transcribe(small))).message, lost.message);
    const none = await refusal(heard(whisper, { sound: "here" }));
    assert.deepEqual([none.code, none.param], ["invalid_request", "file"]);
    assert.match(none.message, /the form has no field `file`/);
    const json = { ...upload(Buffer.from("{}")), contentType: "application/json" };
    assert.equal((await refusal(whisper.transcribe(json))).code, "invalid_request");
    assert.equal(await heard(whisper), '{"text":" x\\n"}');
  });

  it("converts with ffmpeg where there is one, and says so where that fails", async (t) => {
    const { whisper, folder } = await whisperFor(t, {
      path: `/nowhere:${join(await programs(t), "bin")}:/usr/bin:/bin`,
    });
    await whisper.start(await whisperServer(), await writeWhisperModel(folder, "converted"), never);
    assert.equal(whisper.snapshot().converts, true);
    assert.equal(await heard(whisper), '{"text":" converted\\n"}');
    const error = await refusal(heard(whisper, { file: Buffer.from("no sound at all") }));
    assert.equal(error.code, "invalid_request");
    assert.match(error.message, /or in any form that ffmpeg reads/);
    assert.deepEqual(
      (await readdir(folder)).filter((name) => name.endsWith(".wav")),
      [],
    );
  });

  it("ends where ffmpeg makes more of a sound than it may hold, and leaves nothing of it", async (t) => {
    const folder = await programs(t, 'truncate -s 1G "$last"; exec sleep 60');
    const { whisper, folder: scratch } = await whisperFor(t, {
      path: `${join(folder, "bin")}:/usr/bin:/bin`,
      memoryLimit: 2 ** 28,
    });
    await whisper.start(await whisperServer(), await writeWhisperModel(scratch, "converted"), never);
    const error = await refusal(heard(whisper));
    assert.equal(error.code, "sound_too_long", error.message);
    assert.deepEqual([whisper.snapshot().phase, whisper.snapshot().crashes], ["stopped", []]);
    assert.deepEqual(
      (await readdir(scratch)).filter((name) => name.startsWith("whisper-server-")),
      [],
    );
  });

  it("whose model is missing or broken ends with its own words", async (t) => {
    const { whisper, folder } = await whisperFor(t);
    const broken = join(folder, "ggml-broken.bin");
    await writeFile(broken, Buffer.alloc(4_000));
    for (const model of [broken, join(folder, "ggml-none.bin")]) {
      const error = await refusal(whisper.start(await whisperServer(), model, never));
      assert.equal(error.code, "engine_failed");
      assert.match(error.message, /failed to initialize whisper context/);
    }
    assert.deepEqual([whisper.snapshot().phase, whisper.snapshot().crashes], ["stopped", []]);
    assert.equal((await refusal(whisper.start(join(folder, "none"), broken, never))).code, "engine_missing");
    assert.equal(whisper.snapshot().phase, "stopped");
  });

  it("does one upload at a time in the order of their coming, and has no endless line", async (t) => {
    const { whisper } = await startedWhisper(t, "in turn", 2);
    const slow = new PassThrough();
    const body = form({ file: someSound() });
    slow.write(body.subarray(0, 200));
    const order: string[] = [];
    const first = whisper.transcribe(upload(slow)).then(() => order.push("first"));
    const second = heard(whisper).then(() => order.push("second"));
    const leaving = new AbortController();
    const untouched = Readable.from([body]);
    const third = refusal(whisper.transcribe(upload(untouched, leaving.signal)));
    const tooMany = await refusal(heard(whisper));
    assert.equal(tooMany.code, "busy");
    assert.equal(tooMany.retryAfterMs, 5_000);
    leaving.abort();
    assert.equal((await third).code, "cancelled");
    assert.equal(untouched.readableDidRead, false);
    assert.deepEqual(order, []);
    slow.end(body.subarray(200));
    await Promise.all([first, second]);
    assert.deepEqual(order, ["first", "second"]);
  });

  it("that is killed in the middle of it breaks off in words, and is started again", async (t) => {
    const { whisper, folder } = await whisperFor(t);
    const endless = await writeWhisperModel(folder, "on and", "ggml-endless.en.bin", true);
    await whisper.start(await whisperServer(), endless, never);
    const body = form({ file: someSound() });
    const stalled = new PassThrough();
    stalled.write(body.subarray(0, 200));
    const uploading = refusal(whisper.transcribe(upload(stalled)));
    const waiting = refusal(heard(whisper));
    await until("the upload is being sent", () => stalled.readableDidRead && stalled.readableLength === 0);
    process.kill(whisper.snapshot().pid ?? 0, "SIGKILL");
    assert.match((await uploading).message, /the transcription engine broke off/);
    assert.ok((await waiting).status >= 502);
    assert.match(whisper.snapshot().lastWords, /ended by SIGKILL/);
    assert.equal(whisper.snapshot().crashes.length, 1);

    await whisper.start(await whisperServer(), endless, never);
    const sent = Readable.from([body]);
    const computing = refusal(whisper.transcribe(upload(sent)));
    await until("it has all of it", () => sent.readableEnded);
    process.kill(whisper.snapshot().pid ?? 0, "SIGKILL");
    assert.equal((await computing).code, "upstream_failed");
    await until("its end is noticed", () => whisper.snapshot().phase === "stopped");
    await whisper.start(await whisperServer(), await writeWhisperModel(folder, "back again"), never);
    assert.equal(await heard(whisper), '{"text":" back again\\n"}');
  });

  it("answers nobody who does not know where: no page and no other user changes its model or ends it", async (t) => {
    const { whisper, folder } = await startedWhisper(t, "only ours");
    const { pid } = whisper.snapshot();
    const words = (await readFile(`/proc/${pid}/cmdline`, "utf8")).split("\0");
    const after = (flag: string): string => words[words.indexOf(flag) + 1] ?? "";
    const other = await writeWhisperModel(folder, "somebody else's", "ggml-other.en.bin");
    const ask = async (path: string, parts: Readonly<Record<string, Buffer | string>>): Promise<number> =>
      (
        await fetch(`http://127.0.0.1:${after("--port")}${path}`, {
          method: "POST",
          headers: { "content-type": "multipart/form-data; boundary=----speech-test-boundary" },
          body: form(parts),
        })
      ).status;
    for (const prefix of ["", "/", `/${"0".repeat(32)}`]) {
      assert.equal(await ask(`${prefix}/load`, { model: other }), 404);
      assert.equal(await ask(`${prefix}/load`, { model: join(folder, "none") }), 404);
      assert.equal(await ask(`${prefix}/v1/audio/transcriptions`, { file: someSound() }), 404);
    }
    assert.equal(await heard(whisper), '{"text":" only ours\\n"}');
    assert.equal(whisper.snapshot().pid, pid);
    // What protects is the path alone.
    const secret = after("--request-path");
    assert.match(secret, /^\/[0-9a-f]{32}$/);
    assert.equal(await ask(`${secret}/load`, { model: other }), 200);
    assert.equal(await heard(whisper), '{"text":" somebody else\'s\\n"}');
    await whisper.stop();
    await whisper.start(await whisperServer(), other, never);
    const again = await readFile(`/proc/${whisper.snapshot().pid}/cmdline`, "utf8");
    assert.equal(again.includes(secret), false);
  });

  it("never says where it answers", async (t) => {
    const { whisper } = await whisperFor(t, { output: (text) => said.push(text) });
    const said: string[] = [];
    const folder = await scratchFolder(t);
    const endless = await writeWhisperModel(folder, "on and", "ggml-endless.en.bin", true);
    await whisper.start(await whisperServer(), endless, never);
    const words = (await readFile(`/proc/${whisper.snapshot().pid}/cmdline`, "utf8")).split("\0");
    const secret = (words[words.indexOf("--request-path") + 1] ?? "/").slice(1);
    assert.equal(secret.length, 32);
    const unread = await refusal(heard(whisper, { file: Buffer.from("no sound") }));
    const sent = Readable.from([form({ file: someSound() })]);
    const computing = refusal(whisper.transcribe(upload(sent)));
    await until("it has all of it", () => sent.readableEnded);
    process.kill(whisper.snapshot().pid ?? 0, "SIGKILL");
    const cut = await computing;
    await until("its end is noticed", () => whisper.snapshot().phase === "stopped");
    const all = inspect([unread, cut, whisper.snapshot(), said], { depth: 10 });
    assert.match(all, /broke off/);
    assert.equal(all.includes(secret), false);
  });

  it("is left by a client that goes away in the middle of its upload", async (t) => {
    const { whisper } = await startedWhisper(t, "still here");
    const cut = new PassThrough();
    cut.write(form({ file: someSound() }).subarray(0, 300));
    const leaving = new AbortController();
    const work = refusal(whisper.transcribe(upload(cut, leaving.signal)));
    await until("it is being sent", () => cut.readableDidRead);
    leaving.abort();
    assert.equal((await work).code, "cancelled");
    assert.equal(await heard(whisper), '{"text":" still here\\n"}');
  });
});

/** A folder with an ffmpeg; it copies what is WAV and fails at the rest, unless told another thing to do. */
async function programs(
  t: TestContext,
  does = 'case "$(head -c 4 "$2")" in RIFF) cp "$2" "$last";; *) exit 1;; esac',
): Promise<string> {
  const { folder } = await whisperFor(t);
  await mkdir(join(folder, "bin"));
  const script = join(folder, "bin", "ffmpeg");
  await writeFile(script, `#!/bin/sh\n[ "$1" = -version ] && exit 0\nfor last; do :; done\n${does}\n`);
  await chmod(script, 0o755);
  return folder;
}
