// The stand-ins for Piper's servers against what the real ones answer: what tests rest on.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { promisify } from "node:util";
import { parseWav } from "../../../../src/speech/wav.ts";
import { type StandInGeneration, startPiperStandIn, writeFakePython } from "../../../support/piper-stand-ins.ts";
import { scratchFolder } from "../../../support/scratch.ts";
import { pitch } from "../../../support/sound.ts";

const voices = { "en_US-low-low": 300, "en_US-high-low": 600 };
const json = { "content-type": "application/json" };
const generations = ["synthesize", "json", "text"] as const;

async function started(t: TestContext, generation: StandInGeneration) {
  const server = await startPiperStandIn(t, { generation, voices, speakers: { one: 0, two: 1, three: 2 } });
  const send = (
    method: string,
    path: string,
    body?: string | Buffer<ArrayBuffer>,
    headers: Record<string, string> = json,
  ) => fetch(server.origin + path, { method, headers, ...(body === undefined ? {} : { body }) });
  const say = (wanted: object) =>
    send("POST", generation === "synthesize" ? "/synthesize" : "/", JSON.stringify(wanted));
  const tone = async (wanted: object): Promise<number> => {
    const { samples, sampleRate } = parseWav(new Uint8Array(await (await say(wanted)).arrayBuffer()));
    return Math.round(pitch(samples, sampleRate) / 100) * 100;
  };
  return { server, send, say, tone };
}

describe("a stand-in for Piper", { concurrency: true }, () => {
  const routes: readonly (readonly [string, string, Readonly<Record<StandInGeneration, number>>])[] = [
    ["GET", "/", { synthesize: 200, json: 405, text: 500 }],
    ["GET", "/?text=hello", { synthesize: 200, json: 405, text: 200 }],
    ["GET", "/info", { synthesize: 200, json: 404, text: 404 }],
    ["GET", "/voices", { synthesize: 200, json: 200, text: 404 }],
    ["GET", "/all-voices", { synthesize: 500, json: 500, text: 404 }],
    ["POST", "/download", { synthesize: 500, json: 500, text: 404 }],
    ["POST", "/", { synthesize: 405, json: 500, text: 500 }],
    ["OPTIONS", "/", { synthesize: 200, json: 200, text: 200 }],
    ["DELETE", "/", { synthesize: 405, json: 405, text: 405 }],
  ];
  for (const generation of generations) {
    it(`of the ${generation} generation has its routes`, async (t) => {
      const { server, send } = await started(t, generation);
      for (const [method, path, status] of routes)
        assert.equal((await send(method, path)).status, status[generation], `${method} ${path}`);
      // JSON too is read aloud by the old one, and the text of an address.
      assert.deepEqual(server.spoken, generation === "text" ? ["hello"] : []);
    });
  }

  it("says for every mistake 500 and no reason, and for some 200", async (t) => {
    const { say, send } = await started(t, "synthesize");
    for (const [wanted, status] of [
      [{ text: "hello" }, 200],
      [{ text: "😀" }, 200],
      [{ text: "hello", voice: "nobody" }, 200],
      [{ text: "hello", length_scale: "2" }, 200],
      [{ text: "hello", speaker: "nobody" }, 200],
      [{ text: "..." }, 500],
      [{ text: " " }, 500],
      [{ text: 3 }, 500],
      [{}, 500],
      [{ text: "hello", length_scale: "x" }, 500],
      [{ text: "hello", length_scale: null }, 500],
      [{ text: "hello", speaker_id: "1" }, 500],
      [{ text: "hello", speaker_id: 3 }, 500],
    ] as const)
      assert.equal((await say(wanted)).status, status, JSON.stringify(wanted));
    const form = { "content-type": "application/x-www-form-urlencoded" };
    assert.equal((await send("POST", "/synthesize", '{"text":"hello"}', form)).status, 500);
    assert.equal((await send("POST", "/synthesize", "{ half")).status, 500);
    const old = await started(t, "text");
    assert.equal((await old.send("POST", "/", Buffer.from([0xff, 0xfe, 0x61]))).status, 500);
    assert.equal((await old.say({ text: "hello" })).status, 200);
    assert.deepEqual(old.server.spoken, ['{"text":"hello"}']);
  });

  it("speaks with the voice and the speaker that it takes to be meant", async (t) => {
    const { tone } = await started(t, "json");
    const text = "hello there, who is it?";
    assert.equal(await tone({ text }), 300);
    assert.equal(await tone({ text, voice: "nobody" }), 300);
    assert.equal(await tone({ text, voice: "../voices/en_US-high-low" }), 600);
    assert.equal(await tone({ text, speaker_id: 1 }), 600);
    assert.equal(await tone({ text, speaker: "three" }), 900);
    assert.equal(await tone({ text, speaker: "nobody" }), 300);
  });

  it("takes no flag that Piper does not know, and needs a voice", async (t) => {
    const folder = await scratchFolder(t);
    const python = await writeFakePython(join(folder, "python3"), "synthesize");
    const model = join(folder, "v.onnx");
    await writeFile(model, "");
    const codeOf = (...flags: string[]): Promise<number> =>
      promisify(execFile)(python, ["-m", "piper.http_server", ...flags]).then(
        () => 0,
        (error: { code: number }) => error.code,
      );
    assert.equal(await codeOf("--model", model, "--data-dirs", folder), 2);
    assert.equal(await codeOf("--port", "1"), 2);
    assert.equal(await codeOf("--model", join(folder, "none.onnx")), 1);
  });
});
