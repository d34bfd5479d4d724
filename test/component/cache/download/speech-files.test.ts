// Voices and transcription models from a hub on loopback into the cache, and what is found there.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import {
  cachedTranscriptionModels,
  cachedVoices,
  pullTranscriptionModel,
  pullVoice,
} from "../../../../src/cache/download/speech-files.ts";
import { createSpeechLists } from "../../../../src/cache/download/speech-lists.ts";
import { snapshotPath } from "../../../../src/cache/layout/layout.ts";
import { createHubClient } from "../../../../src/hub/client.ts";
import { searchModels } from "../../../../src/speech/transcription-models.ts";
import { requireVoice } from "../../../../src/speech/voices.ts";
import { cleanUp } from "../../../support/clean-up.ts";
import { type Pulling, startPulling } from "../../../support/pulling.ts";
import { refusal, scratchFolder } from "../../../support/scratch.ts";
import { manifestEntry } from "../../../support/voices.ts";

const voice = "pt_PT-tugão-medium";
const base = "pt/pt_PT/tugão/medium";
const never = new AbortController().signal;

interface World extends Pulling {
  readonly stateDir: string;
  readonly voicesDir: string;
  readonly options: Omit<Parameters<typeof pullVoice>[1], "voicesDir"> & { readonly voicesDir: string };
  lists(now?: () => number): ReturnType<typeof createSpeechLists>;
}

async function world(t: TestContext): Promise<World> {
  const pulling = await startPulling(t);
  const stateDir = await scratchFolder(t);
  const voicesDir = join(stateDir, "voices");
  const content: Record<string, Buffer> = {
    [`${base}/${voice}.onnx`]: Buffer.alloc(200_000, "model"),
    [`${base}/${voice}.onnx.json`]: Buffer.from("{}"),
    [`${base}/MODEL_CARD`]: Buffer.from("a license"),
  };
  const files = Object.entries(content).map(([path, bytes]) => [
    path,
    { size_bytes: bytes.length, md5_digest: createHash("md5").update(bytes).digest("hex") },
  ]);
  const manifest = { [voice]: manifestEntry(voice, { files: Object.fromEntries(files) }) };
  pulling.hub.addRepo("rhasspy/piper-voices", {
    files: { ...content, "voices.json": Buffer.from(JSON.stringify(manifest)) },
  });
  pulling.hub.addRepo("ggerganov/whisper.cpp", {
    files: {
      "ggml-base.en.bin": Buffer.alloc(300_000, "base"),
      "ggml-tiny.bin": Buffer.alloc(100_000, "tiny"),
      "README.md": Buffer.from("read me"),
    },
  });
  return {
    ...pulling,
    stateDir,
    voicesDir,
    options: {
      client: pulling.client,
      cacheDir: pulling.cacheDir,
      gateway: "mine",
      voicesDir,
      freeBytes: () => Promise.resolve(undefined),
      signal: never,
      onProgress: (step) => void pulling.progress.push(step),
      // A failing hub is tried six times: with the product's pauses that lasts 15.5 s.
      tuning: { retryMs: 2 },
    },
    lists: (now = Date.now) => createSpeechLists({ client: pulling.client, freshMs: 60_000, now }),
  };
}

describe("a voice", { concurrency: true }, () => {
  it("comes whole and verified, is linked flat, and is there for the next one who asks", async (t) => {
    const { lists, options, voicesDir, hub, progress } = await world(t);
    const found = requireVoice(await lists().voices(never), voice);
    assert.ok(found);
    assert.deepEqual(await cachedVoices(voicesDir), []);
    const pulled = await pullVoice(found, options);
    assert.equal(pulled.downloadedBytes, found.sizeBytes);
    assert.deepEqual(await cachedVoices(voicesDir), [voice]);
    assert.deepEqual((await readdir(voicesDir)).toSorted(), [
      `${voice}.MODEL_CARD`,
      `${voice}.onnx`,
      `${voice}.onnx.json`,
    ]);
    assert.equal((await readFile(join(voicesDir, `${voice}.onnx`))).length, 200_000);
    assert.ok(progress.some(({ phase, file }) => phase === "verifying" && file.endsWith(".onnx")));
    const asked = hub.requests.filter(({ origin }) => origin === "storage").length;
    assert.equal((await pullVoice(found, options)).downloadedBytes, 0);
    assert.equal(hub.requests.filter(({ origin }) => origin === "storage").length, asked);
  });

  it("that comes with other bytes is not there, nor is any part of it", async (t) => {
    const { lists, options, voicesDir, hub, world: files } = await world(t);
    const found = requireVoice(await lists().voices(never), voice);
    assert.ok(found);
    for (const { path } of found.files) {
      hub.corrupt(path, 2);
      assert.equal((await refusal(pullVoice(found, options))).code, "checksum_mismatch", path);
      assert.deepEqual(await cachedVoices(voicesDir), []);
    }
    hub.failNext({ status: 500, times: 9, match: ({ origin }) => origin === "storage" });
    assert.equal((await refusal(pullVoice(found, options))).code, "hub_unreachable");
    assert.deepEqual(await cachedVoices(voicesDir), []);
    assert.ok((await files()).every((file) => !file.includes("incomplete")));
  });

  it("counts as there only whole, with a name that is one", async (t) => {
    const folder = await scratchFolder(t);
    for (const name of [
      "a-b-low.onnx",
      "a-b-low.onnx.json",
      "half.onnx",
      "empty.onnx.json",
      ".hidden.onnx",
      ".hidden.onnx.json",
      "a b.onnx",
      "a b.onnx.json",
    ])
      await writeFile(join(folder, name), "x");
    await writeFile(join(folder, "empty.onnx"), "");
    assert.deepEqual(await cachedVoices(folder), ["a-b-low"]);
    assert.deepEqual(await cachedVoices(join(folder, "none")), []);
  });
});

describe("a transcription model", { concurrency: true }, () => {
  it("comes into the cache and is found there, beside those of others", async (t) => {
    const { options, cacheDir } = await world(t);
    const pulled = await pullTranscriptionModel("ggml-base.en.bin", options);
    const other = join(cacheDir, "models--acme--ears", "snapshots", "0".repeat(40));
    await mkdir(other, { recursive: true });
    for (const name of ["ggml-base.en.bin", "ggml-own.bin", "ggml-silero-v5.bin", "notes.bin"])
      await writeFile(join(other, name), "x");
    const cached = await cachedTranscriptionModels(cacheDir);
    assert.deepEqual(
      cached.map(({ name, path }) => [name, path]),
      [
        ["ggml-base.en.bin", snapshotPath(cacheDir, pulled.repo, pulled.commit, "ggml-base.en.bin")],
        ["ggml-own.bin", join(other, "ggml-own.bin")],
      ],
    );
    assert.equal(cached[0]?.size, 300_000);
    await rm(join(cacheDir, "models--ggerganov--whisper.cpp", "blobs"), { recursive: true });
    assert.equal((await cachedTranscriptionModels(cacheDir))[0]?.path, join(other, "ggml-base.en.bin"));
    assert.deepEqual(await cachedTranscriptionModels(join(cacheDir, "none")), []);
  });

  it("that does not exist is said to, and a path is none", async (t) => {
    const { options } = await world(t);
    const none = await refusal(pullTranscriptionModel("ggml-none.bin", options));
    assert.equal(none.code, "transcription_model_not_found");
    assert.match(none.message, /has no file ggml-none\.bin/);
    assert.equal((await refusal(pullTranscriptionModel("../ggml-tiny.bin", options))).code, "invalid_request");
  });
});

describe("the official lists", { concurrency: true }, () => {
  it("are asked for once in a while, and kept for a time without the hub", async (t) => {
    const { lists, hub } = await world(t);
    let now = 0;
    const first = lists(() => now);
    assert.equal((await first.voices(never))[0]?.key, voice);
    assert.deepEqual(
      searchModels(await first.modelFiles(never), "").map(({ path, size }) => [path, size]),
      [
        ["ggml-base.en.bin", 300_000],
        ["ggml-tiny.bin", 100_000],
      ],
    );
    const asked = hub.requests.length;
    await first.voices(never);
    await first.modelFiles(never);
    assert.equal(hub.requests.length, asked);
    now = 61_000;
    await first.voices(never);
    assert.ok(hub.requests.length > asked);
    await hub.close();
    now = 122_000;
    assert.equal((await first.voices(never)).length, 1);
    assert.equal((await first.modelFiles(never)).length, 3);
  });

  it("that come empty are none: the ones before stay", async (t) => {
    const { lists, hub } = await world(t);
    let now = 0;
    const first = lists(() => now);
    await first.voices(never);
    for (const empty of ["{}", "[]", JSON.stringify({ "../up": {} })]) {
      hub.addRepo("rhasspy/piper-voices", { files: { "voices.json": Buffer.from(empty) } });
      now += 61_000;
      assert.equal((await first.voices(never)).length, 1, empty);
    }
    assert.equal((await refusal(lists().voices(AbortSignal.abort()))).code, "cancelled");
  });

  it("of a hub that is silent: one question for all, and each may leave", async (t) => {
    const silent = createServer();
    const questions: IncomingMessage[] = [];
    silent.on("request", (request) => questions.push(request));
    await once(silent.listen(0, "127.0.0.1"), "listening");
    cleanUp(t, () => {
      silent.close();
      silent.closeAllConnections();
    });
    const { port } = silent.address() as AddressInfo;
    const client = createHubClient({ endpoint: `http://127.0.0.1:${port}`, token: undefined, stallMs: 500 });
    cleanUp(t, () => client.close());
    const { voices } = createSpeechLists({ client, freshMs: 3_600_000, now: () => 0 });

    const [leaving, asked] = [new AbortController(), once(silent, "request")];
    const both = [refusal(voices(leaving.signal)), refusal(voices(never))] as const;
    await asked;
    leaving.abort();
    assert.equal((await both[0]).code, "cancelled");
    assert.equal((await both[1]).code, "hub_unreachable");
    assert.equal(new Set(questions.map(({ url }) => url)).size, 1);

    const askedAgain = once(silent, "request");
    const last = new AbortController();
    const alone = refusal(voices(last.signal));
    const [request] = (await askedAgain) as [IncomingMessage];
    const closed = once(request.socket, "close");
    last.abort();
    assert.equal((await alone).code, "cancelled");
    // Nobody waits for it any more.
    await closed;
  });

  it("that never came are the hub's failure", async (t) => {
    const { lists, hub } = await world(t);
    hub.failNext({ status: 503, times: 9 });
    assert.equal((await refusal(lists().voices(never))).code, "hub_unreachable");
    hub.addRepo("rhasspy/piper-voices", { files: { "voices.json": Buffer.from("<html>") } });
    await hub.close();
    assert.equal((await refusal(lists().modelFiles(never))).code, "hub_unreachable");
  });
});
