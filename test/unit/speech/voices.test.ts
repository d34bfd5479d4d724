// The voice manifest, what is found in it, what a voice says about itself, and the names of transcription models.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  isEnglishOnly,
  isModelFileName,
  modelFileName,
  searchModels,
} from "../../../src/speech/transcription-models.ts";
import { parseVoiceConfig, speakerNumber } from "../../../src/speech/voice-config.ts";
import { isVoiceId, parseManifest, requireVoice, searchVoices, splitVoiceName } from "../../../src/speech/voices.ts";
import { manifestEntry, voiceManifest } from "../../support/voices.ts";

const voices = parseManifest(voiceManifest) ?? [];

function withoutDigests(files: object): object {
  return Object.fromEntries(Object.keys(files).map((path) => [path, { size_bytes: 1, md5_digest: "none" }]));
}

describe("the voice manifest", () => {
  it("gives each voice with its files and sizes", () => {
    const lessac = requireVoice(voices, "en_US-lessac-medium");
    assert.deepEqual(lessac.files[0], {
      path: "en/en_US/lessac/medium/en_US-lessac-medium.onnx",
      sizeBytes: 63_201_294,
    });
    assert.equal(lessac.sizeBytes, 63_201_294 + 7_010 + 351);
    assert.equal(requireVoice(voices, "en_GB-vctk-medium").speakers.get("p236"), 1);
  });

  it("is searched by id, speaker and language in both tongues, ignoring case", () => {
    const keys = (query: string): string[] => searchVoices(voices, query).map(({ key }) => key);
    assert.deepEqual(keys("LESSAC"), ["en_US-lessac-medium"]);
    assert.deepEqual(keys("deutsch"), ["de_DE-thorsten-medium"]);
    assert.deepEqual(keys("german"), ["de_DE-thorsten-medium"]);
    assert.deepEqual(keys("great brit"), []);
    assert.deepEqual(keys(" en_ "), ["en_GB-vctk-medium", "en_US-lessac-medium"]);
    assert.deepEqual(keys("TUGÃO"), ["pt_PT-tugão-medium"]);
    assert.deepEqual(keys("nowhere"), []);
    assert.equal(keys("").length, voices.length);
  });

  it("answers exactly the fields of the interface, and no more than 50", () => {
    assert.deepEqual(searchVoices(voices, "thorsten"), [
      {
        key: "de_DE-thorsten-medium",
        name: "thorsten",
        languageCode: "de_DE",
        languageName: "German",
        country: "Germany",
        quality: "medium",
        numSpeakers: 1,
        sizeBytes: 63_206_398,
      },
    ]);
    const many = Object.fromEntries(
      Array.from({ length: 173 }, (_, i) => [`xx_YY-v${i}-low`, manifestEntry(`xx_YY-v${i}-low`)]),
    );
    assert.equal(searchVoices(parseManifest(many) ?? [], "xx").length, 50);
  });

  it("finds a voice by its id, in any case", () => {
    assert.equal(requireVoice(voices, "EN_us-Lessac-medium").key, "en_US-lessac-medium");
    assert.equal(requireVoice(voices, "pt_PT-tuga\u0303o-medium").key, "pt_PT-tugão-medium");
    assert.throws(() => requireVoice(voices, "lessac"), /there is no voice "lessac"/);
  });

  it("that is damaged in places gives the rest, and names what it left out", () => {
    const good = manifestEntry("en_US-good-low");
    const damaged: Record<string, unknown> = {
      // Its files are checked against the hub's digests.
      "en_US-good-low": { ...good, files: withoutDigests(good["files"] as object) },
      "../up": good,
      "a b": good,
      null: null,
      "en_US-nofiles-low": { ...manifestEntry("en_US-nofiles-low"), files: {} },
      "en_US-escape-low": {
        ...good,
        files: { "../../x/en_US-escape-low.onnx": { size_bytes: 1, md5_digest: "0".repeat(32) } },
      },
      "en_US-nosize-low": { ...good, files: { "en_US-nosize-low.onnx": { md5_digest: "0".repeat(32) } } },
      "en_US-other-low": good,
    };
    const read = parseManifest(damaged);
    assert.deepEqual(
      read?.map(({ key }) => key),
      ["en_US-good-low"],
    );
    for (const nothing of [null, [], {}, "x", 3, { error: "not found" }]) assert.equal(parseManifest(nothing), null);
  });
});

describe("the id of a voice", () => {
  it("is a plain file name in any language", () => {
    for (const id of ["en_US-lessac-medium", "pt_PT-tugão-medium", "zh_CN-huayan-x_low", "my-jarvis"])
      assert.equal(isVoiceId(id), true, id);
  });

  it("is never a path, a flag or something hidden", () => {
    for (const id of [
      "",
      "../x",
      "a/b",
      "a\\b",
      "..",
      ".x",
      "-m",
      "--data-dir",
      "a b",
      "a.onnx",
      "a\0",
      "a\nb",
      "x".repeat(101),
    ]) {
      assert.equal(isVoiceId(id), false, JSON.stringify(id));
    }
  });
});

describe("what a voice says about itself", () => {
  const config = parseVoiceConfig(
    {
      audio: { sample_rate: 22_050 },
      espeak: { voice: "en-us" },
      num_speakers: 3,
      speaker_id_map: { p239: 0, p236: 1 },
      phoneme_id_map: { _: [0], "^": [1], $: [2], a: [3], bad: ["x"] },
    },
    "v",
  );

  it("is its rate, its language and its sounds", () => {
    assert.equal(config.sampleRate, 22_050);
    assert.equal(config.espeakVoice, "en-us");
    assert.deepEqual([...config.phonemeIds.keys()], ["_", "^", "$", "a"]);
  });

  it("tells its speakers by name or number, and refuses others: Piper would speak with another voice", () => {
    const speaker = (name: string): number | null => {
      const wanted = splitVoiceName(name);
      return speakerNumber(config, wanted.speaker, wanted.voice);
    };
    assert.equal(speaker("v"), null);
    assert.equal(speaker("v:p236"), 1);
    assert.equal(speaker("v:2"), 2);
    for (const name of ["v:3", "v:-1", "v:nobody", "v:1.5"]) assert.throws(() => speaker(name), /it has 3: p239, p236/);
    assert.equal(speakerNumber({ ...config, numSpeakers: 1 }, "0", "v"), null);
  });

  it("names what is missing", () => {
    assert.throws(
      () => parseVoiceConfig({ audio: {} }, "v"),
      /v\.onnx\.json describes no voice: audio\.sample_rate, num_sp/,
    );
    assert.throws(() => parseVoiceConfig(null, "v"));
    const whole = { audio: { sample_rate: 22_050 }, espeak: { voice: "en-us" }, num_speakers: 1 };
    const ids = { _: [0], "^": [1], $: [2] };
    assert.ok(parseVoiceConfig({ ...whole, phoneme_id_map: ids }, "v"));
    for (const [change, words] of [
      [{ phoneme_id_map: {} }, /: phoneme_id_map with numbers for _ \^ \$$/],
      [{ phoneme_id_map: { ...ids, $: [] } }, /: phoneme_id_map with numbers for \$$/],
      [{ phoneme_id_map: ids, espeak: { voice: "x".repeat(200) } }, /: espeak\.voice$/],
      [{ phoneme_id_map: ids, espeak: { voice: "en us\n" } }, /: espeak\.voice$/],
    ] as const)
      assert.throws(() => parseVoiceConfig({ ...whole, ...change }, "v"), words);
  });
});

describe("transcription models", () => {
  const files = ["ggml-base.en.bin", "ggml-tiny.bin", "ggml-large-v3-turbo-q5_0.bin", "ggml-small.en-tdrz.bin"].map(
    (path, index) => ({ path, size: index + 1, type: "file" }),
  );
  const others = [
    "README.md",
    "ggml-base.en-encoder.mlmodelc.zip",
    "ggml-silero-v5.1.2.bin",
    "for-tests-ggml-base.bin",
    "x/ggml-base.bin",
  ];

  it("are searched by file name among those that are some", () => {
    const listing = [...files, ...others.map((path) => ({ path, size: 1 }))];
    assert.equal(searchModels(listing, "").length, files.length);
    assert.deepEqual(searchModels([{ path: "ggml-of-tomorrow.bin", size: 7 }], "TOMORROW"), [
      { path: "ggml-of-tomorrow.bin", size: 7 },
    ]);
    assert.deepEqual(searchModels(listing, "TURBO"), [{ path: "ggml-large-v3-turbo-q5_0.bin", size: 3 }]);
    assert.deepEqual(
      searchModels(listing, ".en").map(({ path }) => path),
      ["ggml-base.en.bin", "ggml-small.en-tdrz.bin"],
    );
  });

  it("may be one's own, but are file names", () => {
    assert.equal(isModelFileName("ggml-my.own-model.bin"), true);
    for (const name of ["../ggml-x.bin", "ggml-.bin", "x.bin", "ggml-a/b.bin", "ggml-silero-v6.bin"])
      assert.equal(isModelFileName(name), false, name);
    assert.equal(modelFileName("base.en"), "ggml-base.en.bin");
    assert.equal(modelFileName("ggml-tiny.bin"), "ggml-tiny.bin");
    assert.equal(modelFileName("../x"), null);
  });

  it("say by their name that they know English alone", () => {
    assert.deepEqual(
      ["ggml-base.en.bin", "ggml-small.en-tdrz.bin", "ggml-base.en-q5_1.bin", "ggml-base.bin", "ggml-endless.bin"].map(
        isEnglishOnly,
      ),
      [true, true, true, false, false],
    );
  });
});
