// The real whisper-server as our child: what it hears goes through untouched, what goes wrong is said in words.
import assert from "node:assert/strict";
import { chmod, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { describe, it, type TestContext } from "node:test";
import { inspect } from "node:util";
import { isRunning } from "../support/processes.ts";
import { refusal, scratchFolder, until } from "../support/scratch.ts";
import { wavSaying } from "../support/sounds.ts";
import { form, heard, someSound, startedWhisper, upload, whisperFor, writeWhisperModel } from "../support/whisper.ts";

const never = new AbortController().signal;

describe("whisper-server", { concurrency: true }, () => {
  it("is ready once its model is loaded, and what it answers is the answer", async (t) => {
    const { whisper } = await startedWhisper(t);
    assert.equal(await heard(whisper, { model: "whisper-1", file: someSound() }), '{"text":" hello from the ear\\n"}');
    const text = await whisper.transcribe(upload(form({ file: someSound(), response_format: "vtt" })), never);
    assert.equal(text.contentType, "text/vtt");
    assert.match(text.body.toString(), /^WEBVTT\n/);
    await whisper.process.stop();
    assert.equal(await isRunning(whisper.process.pid), false);
    assert.equal(await whisper.process.ended, null);
  });

  it("that refuses an upload says which forms it reads, and that there is no ffmpeg; fields are the engine's own", async (t) => {
    const { start, folder } = await whisperFor(t, { path: "/nowhere" });
    const whisper = await start(await writeWhisperModel(folder, "x"));
    assert.equal(whisper.converts, false);
    for (const [parts, why] of [
      [{ file: Buffer.from("no sound") }, "400: Invalid request"],
      [{ file: someSound().subarray(0, 44) }, "400: Invalid request"],
      [{ sound: "here" }, "400: Invalid request"],
      // Damaged ADPCM, over which it fails.
      [{ file: wavSaying({ tag: 2 }) }, "500: vector::_M_default_append"],
      [{ file: wavSaying({ tag: 17 }) }, "500: vector::_M_default_append"],
      [{ temperature: "warm", file: someSound() }, "500: stof"],
      [{ vad: "true", file: someSound() }, "500: failed to process audio"],
    ] as const) {
      const error = await refusal(heard(whisper, parts));
      assert.deepEqual(
        [error.code, error.message],
        [
          "invalid_request",
          `the transcription engine refused the upload (${why}): it takes a form with a field \`file\` that holds sound as WAV, FLAC or MP3; other forms need ffmpeg, which was not in PATH when the engine was started`,
        ],
      );
    }
    const json = { ...upload(Buffer.from("{}")), contentType: "application/json" };
    assert.equal((await refusal(whisper.transcribe(json, never))).code, "invalid_request");
    assert.equal(await heard(whisper), '{"text":" x\\n"}');
  });

  it("converts with ffmpeg where there is one, and says so where that fails", async (t) => {
    const { start, folder } = await whisperFor(t, {
      path: `/nowhere:${join(await programs(t), "bin")}:/usr/bin:/bin`,
    });
    const whisper = await start(await writeWhisperModel(folder, "converted"));
    assert.equal(whisper.converts, true);
    assert.equal(await heard(whisper), '{"text":" converted\\n"}');
    const error = await refusal(heard(whisper, { file: Buffer.from("no sound at all") }));
    assert.equal(error.code, "invalid_request");
    assert.match(error.message, /\(500: FFmpeg conversion failed\.\).*or in any form that ffmpeg reads$/);
    assert.deepEqual(
      (await readdir(folder)).filter((name) => name.endsWith(".wav")),
      [],
    );
  });

  it("ends where ffmpeg makes more of a sound than it may hold, and leaves nothing of it", async (t) => {
    const folder = await programs(t, 'truncate -s 1G "$last"; exec sleep 60');
    const world = await whisperFor(t, { path: `${join(folder, "bin")}:/usr/bin:/bin`, memoryLimit: 2 ** 28 });
    const whisper = await world.start(await writeWhisperModel(world.folder, "converted"));
    const error = await refusal(heard(whisper));
    assert.equal(error.code, "sound_too_long", error.message);
    assert.equal(await whisper.process.ended, null);
    assert.deepEqual(
      (await readdir(world.folder)).filter((name) => name.startsWith("whisper-server-")),
      [],
    );
  });

  it("whose model is missing or broken says why in one line, without a path", async (t) => {
    const { start, folder } = await whisperFor(t);
    const broken = join(folder, "ggml-broken.bin");
    await writeFile(broken, Buffer.alloc(4_000));
    for (const model of [broken, join(folder, "ggml-none.bin")]) {
      const error = await refusal(start(model));
      assert.equal(error.code, "engine_failed");
      assert.equal(
        error.message,
        "the transcription engine ended while starting: error: failed to initialize whisper context",
      );
    }
  });

  it("that is killed in the middle of it breaks off in words", async (t) => {
    const { start, folder } = await whisperFor(t);
    const endless = await start(await writeWhisperModel(folder, "on and", "ggml-endless.en.bin", true));
    const body = form({ file: someSound() });
    const stalled = new PassThrough();
    stalled.write(body.subarray(0, 200));
    const uploading = refusal(endless.transcribe(upload(stalled), never));
    await until("the upload is being sent", () => stalled.readableDidRead && stalled.readableLength === 0);
    process.kill(endless.process.pid, "SIGKILL");
    assert.match((await uploading).message, /the transcription engine broke off/);
    assert.match((await endless.process.ended) ?? "", /^it was ended by SIGKILL/);

    const again = await start(join(folder, "ggml-endless.en.bin"));
    const sent = Readable.from([body]);
    const computing = refusal(again.transcribe(upload(sent), never));
    await until("it has all of it", () => sent.readableEnded);
    process.kill(again.process.pid, "SIGKILL");
    assert.equal((await computing).code, "upstream_failed");
  });

  it("answers nobody who does not know where, and never says where: no page and no other user changes its model", async (t) => {
    const said: string[] = [];
    const { whisper, folder } = await startedWhisper(t, "only ours", {
      onOutput: (text) => said.push(text),
      warn: (_message, fields) => said.push(inspect(fields)),
    });
    const words = (await readFile(`/proc/${whisper.process.pid}/cmdline`, "utf8")).split("\0");
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
    // What protects is the path alone.
    const secret = after("--request-path");
    assert.match(secret, /^\/[0-9a-f]{32}$/);
    assert.equal(await ask(`${secret}/load`, { model: other }), 200);
    assert.equal(await heard(whisper), '{"text":" somebody else\'s\\n"}');

    const unread = await refusal(heard(whisper, { file: Buffer.from("no sound") }));
    const stalled = new PassThrough();
    stalled.write(form({ file: someSound() }).subarray(0, 200));
    const computing = refusal(whisper.transcribe(upload(stalled), never));
    await until("it is being sent", () => stalled.readableDidRead && stalled.readableLength === 0);
    process.kill(whisper.process.pid, "SIGKILL");
    const all = inspect([unread, await computing, await whisper.process.ended, said], { depth: 10 });
    assert.match(all, /broke off/);
    assert.equal(all.includes(secret.slice(1)), false);
  });

  it("is ended with an upload that is broken off: the next one need not wait for that", async (t) => {
    const { whisper } = await startedWhisper(t, "here");
    const leaving = new AbortController();
    const cut = new PassThrough();
    cut.write(form({ file: someSound() }).subarray(0, 300));
    const work = refusal(whisper.transcribe(upload(cut), leaving.signal));
    await until("it is being sent", () => cut.readableDidRead);
    leaving.abort();
    assert.equal((await work).code, "cancelled");
    assert.equal(await whisper.process.ended, null);
    assert.equal(await isRunning(whisper.process.pid), false);
  });
});

/** A folder with an ffmpeg; it copies what is WAV and fails at the rest, unless told another thing to do. */
async function programs(
  t: TestContext,
  does = 'case "$(head -c 4 "$2")" in RIFF) cp "$2" "$last";; *) exit 1;; esac',
): Promise<string> {
  const folder = await scratchFolder(t);
  await mkdir(join(folder, "bin"));
  const script = join(folder, "bin", "ffmpeg");
  await writeFile(script, `#!/bin/sh\n[ "$1" = -version ] && exit 0\nfor last; do :; done\n${does}\n`);
  await chmod(script, 0o755);
  return folder;
}
