// A text spoken piece by piece.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { spokenParts } from "../../../src/speech/text.ts";
import type { Pcm } from "../../../src/speech/wav.ts";
import { refusal } from "../../support/scratch.ts";

function sound(length: number, sampleRate = 1_000): Pcm {
  return { sampleRate, channels: 1, samples: new Int16Array(length).fill(7) };
}

describe("spokenParts", () => {
  it("has a pause after each sentence and clause, and none at the end", async () => {
    const pieces = [
      { text: "a,", ends: "clause" },
      { text: "b", ends: "word" },
      { text: "c.", ends: "sentence" },
      { text: "d.", ends: "sentence" },
    ] as const;
    const parts: Pcm[] = [];
    for await (const part of spokenParts(pieces, async (text) => sound(text.length))) parts.push(part);
    const shown = parts.map(({ samples }) => `${samples[0] === 7 ? "sound" : "silence"} ${samples.length}`);
    assert.deepEqual(shown, ["sound 2", "silence 100", "sound 1", "sound 2", "silence 250", "sound 2"]);
  });

  it("asks for a piece once the sound before it is taken", async () => {
    const asked: string[] = [];
    const pieces = ["a", "b", "c"].map((text) => ({ text, ends: "word" }) as const);
    const parts = spokenParts(pieces, async (text) => {
      asked.push(text);
      return sound(1);
    });
    await parts.next();
    assert.deepEqual(asked, ["a"]);
    await parts.next();
    await parts.return();
    assert.deepEqual(asked, ["a", "b"]);
  });

  it("joins no sounds of two rates", async () => {
    const pieces = ["a", "b"].map((text) => ({ text, ends: "word" }) as const);
    const parts = spokenParts(pieces, async (text) => sound(1, text === "a" ? 16_000 : 22_050));
    await parts.next();
    assert.equal((await refusal(parts.next())).code, "upstream_failed");
  });
});
