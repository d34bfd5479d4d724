// A Piper voice made ready for sherpa-onnx: what is written, when it is written again, and what cannot be.
import assert from "node:assert/strict";
import { chmod, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { describe, it } from "node:test";
import { prepareVoice } from "../../../../src/engines/speech/sherpa-voice.ts";
import { refusal, scratchFolder } from "../../../support/scratch.ts";
import { writeVoice } from "../../../support/sherpa.ts";

describe("a voice for sherpa-onnx", { concurrency: true }, () => {
  it("is the voice with facts about it at the end, and a table of its sounds", async (t) => {
    const folder = await scratchFolder(t);
    const model = await writeVoice(folder, "en_US-a-low", {
      sampleRate: 22_050,
      facts: { phoneme_id_map: { _: [0], "^": [1], $: [2], " ": [3], ˈ: [120], ab: [7], none: [] } },
    });
    const prepared = await prepareVoice("en_US-a-low", model, join(folder, "prepared"));
    const [raw, made] = [await readFile(model), await readFile(prepared.model)];
    assert.deepEqual(made.subarray(0, raw.length), raw);
    // Field 14 of the model: a key and its value.
    assert.ok(made.subarray(raw.length).includes(Buffer.from("\x72\x14\x0a\x0bsample_rate\x12\x0522050", "latin1")));
    assert.equal(await readFile(prepared.tokens, "utf8"), "_ 0\n^ 1\n$ 2\n  3\nˈ 120\n");
  });

  it("is the only one that is kept", async (t) => {
    const folder = await scratchFolder(t);
    const target = join(folder, "prepared");
    await prepareVoice("en_US-a-low", await writeVoice(folder, "en_US-a-low"), target);
    const { model } = await prepareVoice("en_US-b-low", await writeVoice(folder, "en_US-b-low"), target);
    assert.deepEqual(await readdir(target), [basename(dirname(model))]);
  });

  it("is copied into files that can be written, also where its own cannot", async (t) => {
    const folder = await scratchFolder(t);
    const model = await writeVoice(folder, "en_US-a-low");
    await chmod(model, 0o444);
    const { model: copy } = await prepareVoice("en_US-a-low", model, join(folder, "prepared"));
    assert.equal((await stat(copy)).mode & 0o777, 0o644);
  });

  it("is refused where something else than espeak-ng has to read the text, or a part of it is missing", async (t) => {
    const folder = await scratchFolder(t);
    const model = await writeVoice(folder, "zh_CN-a-low", { facts: { phoneme_type: "pinyin" } });
    const code = async (): Promise<string> =>
      (await refusal(prepareVoice("zh_CN-a-low", model, join(folder, "p")))).code;
    assert.equal(await code(), "not_supported");
    await writeFile(`${model}.json`, "{ half");
    assert.equal(await code(), "engine_failed");
    await rm(`${model}.json`);
    assert.equal(await code(), "source_missing");
    assert.equal((await refusal(prepareVoice("../up", model, join(folder, "p")))).code, "invalid_request");
  });
});
