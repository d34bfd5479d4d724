// Scripted models by themselves: followed by hand through their weights they say their scripts, with room to spare.
import assert from "node:assert/strict";
import { test } from "node:test";
import { answersOf, slowModel, talkingModel } from "../../support/models.ts";
import { type Script, scriptedModel, scriptedModelImage } from "../../support/scripted/scripted-model.ts";

interface OpenModel {
  readonly texts: readonly string[];
  readonly width: number;
  readonly embedding: Float32Array;
  readonly output: Float32Array;
}

/** Finds the vocabulary and the two tables in a file; the header has to be in the order in which the writer puts it. */
function openModel(bytes: Uint8Array): OpenModel {
  const file = Buffer.from(bytes);
  const key = "tokenizer.ggml.tokens";
  let at = file.indexOf(key) + key.length + 8;
  const count = Number(file.readBigUInt64LE(at));
  at += 8;
  const texts = Array.from({ length: count }, () => {
    const length = Number(file.readBigUInt64LE(at));
    at += 8 + length;
    return file.toString("utf8", at - length, at);
  });
  const lastTensor = "ffn_down.weight";
  const dataStart = Math.ceil((file.lastIndexOf(lastTensor) + lastTensor.length + 4 + 16 + 4 + 8) / 32) * 32;
  const tensor = (name: string) => {
    const info = file.indexOf(name) + name.length;
    const width = Number(file.readBigUInt64LE(info + 4));
    const start = dataStart + Number(file.readBigUInt64LE(info + 4 + 16 + 4));
    return {
      width,
      data: Float32Array.from({ length: width * count }, (_, index) => file.readFloatLE(start + index * 4)),
    };
  };
  const { width, data: embedding } = tensor("token_embd.weight");
  return { texts, width, embedding, output: tensor("output.weight").data };
}

/** The token with the highest logit after `token`, and how far it is ahead of the second. */
function next(model: OpenModel, token: number): { readonly token: number; readonly lead: number } {
  let best = { token: -1, logit: Number.NEGATIVE_INFINITY };
  let second = Number.NEGATIVE_INFINITY;
  for (let row = 0; row < model.texts.length; row += 1) {
    let logit = 0;
    for (let at = 0; at < model.width; at += 1) {
      logit += (model.embedding[token * model.width + at] ?? 0) * (model.output[row * model.width + at] ?? 0);
    }
    if (logit > best.logit) {
      second = best.logit;
      best = { token: row, logit };
    } else if (logit > second) second = logit;
  }
  return { token: best.token, lead: best.logit - second };
}

/** What follows `text` in the vocabulary, up to the end or `limit` tokens. */
function speak(model: OpenModel, text: string, limit = 1000) {
  let said = "";
  let lead = Number.POSITIVE_INFINITY;
  let current = model.texts.indexOf(text);
  for (let tokens = 0; tokens < limit; tokens += 1) {
    const step = next(model, current);
    lead = Math.min(lead, step.lead);
    current = step.token;
    if (model.texts[current] === "</s>") return { said, lead };
    said += (model.texts[current] ?? "").replaceAll("\u2581", " ");
  }
  return { said, lead };
}

// e^-25 is one slip in 7 × 10^10 tokens at temperature 1.
const enoughLead = 25;

test("every script is said whole from its start marker, far ahead of any other token", () => {
  for (const name of ["alpha", "beta", "gamma", "a", "Ωmega"]) {
    const description = talkingModel(name);
    const model = openModel(scriptedModel(description));
    assert.equal(new Set(model.texts).size, model.texts.length, "no token text stands twice");
    for (const [index, script] of description.scripts.entries()) {
      const { said, lead } = speak(model, `<|script-${index}|>`, script.endless ? 60 : 1000);
      if (script.endless) {
        assert.ok(said.length > script.says.length * 3);
        assert.equal(said, script.says.repeat(20).slice(0, said.length));
      } else assert.equal(said, script.says);
      assert.ok(lead > enoughLead, `${name} leads by ${lead} in script ${index}`);
    }
  }
});

test("a prompt without a template is answered with the default, whatever it ends in", () => {
  const model = openModel(scriptedModel(talkingModel("alpha")));
  for (const text of ["<s>", "x", ".", "\u2581", "<0xF0>"]) {
    const { said, lead } = speak(model, text);
    assert.equal(said, answersOf("alpha").hello);
    assert.ok(lead > enoughLead, `leads by ${lead} after ${text}`);
  }
});

test("scripts that repeat themselves and each other are said too", () => {
  const scripts: Script[] = [
    { when: "default", says: "The same sentence, the same sentence, and the same words again." },
    { when: { word: "one" }, says: "The same sentence, the same sentence, and the same words again." },
    {
      when: { word: "two" },
      says: "The same sentence, the same sentence, and the same words again!\nAnd 🙂🙂 ünïcödé.",
    },
  ];
  const model = openModel(scriptedModel({ name: "echo", contextLength: 512, scripts }));
  for (const [index, script] of scripts.entries()) assert.equal(speak(model, `<|script-${index}|>`).said, script.says);
});

test("the same model is the same bytes, and another name makes other weights", () => {
  const alpha = scriptedModel(talkingModel("alpha"));
  assert.deepEqual(scriptedModel(talkingModel("alpha")), alpha);
  const beta = scriptedModel(talkingModel("beta"));
  assert.notDeepEqual(beta.subarray(-200_000), alpha.subarray(-200_000));
});

test("a large model is nearly all zeros that need not be held in memory", () => {
  const image = scriptedModelImage({ ...slowModel("slow"), feedForward: 131_072 });
  assert.ok(image.size > 60_000_000);
  assert.ok(image.head.length < 10_000_000);
});

test("what one model cannot say is refused", () => {
  const base = { name: "no", contextLength: 512 };
  assert.throws(() => scriptedModel({ ...base, scripts: [] }), /needs a default script/);
  assert.throws(() => scriptedModel({ ...base, scripts: [{ when: "default", says: "" }] }), /says nothing/);
  assert.throws(() => scriptedModel({ ...base, scripts: [{ when: "default", says: "x" }] }), /no way to cut/);
  const quoted: Script[] = [
    { when: "default", says: "hello" },
    { when: { word: "it's" }, says: "so" },
  ];
  assert.throws(() => scriptedModel({ ...base, scripts: quoted }), /not a plain word/);
});

test("a plain template cannot be told of tools or thinking", () => {
  const hello: Script = { when: "default", says: "Hello." };
  const others: readonly Script[] = [
    { when: "toolResult", says: "Seen." },
    { when: { tool: "get_weather" }, says: "Called." },
    { when: { word: "think" }, says: "<think>So.</think>Thus." },
  ];
  for (const other of others)
    assert.throws(
      () => scriptedModel({ name: "plain", contextLength: 512, template: "plain", scripts: [hello, other] }),
      /script 1 needs tools or thinking/,
    );
});
