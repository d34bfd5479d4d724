// The openai client's audio calls against the gateway, on the real engines, with and without a license key.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createGatewayClient } from "model-gateway/client";
import OpenAI, { toFile } from "openai";
import { parseWav } from "../../src/speech/wav.ts";
import { highVoice, lowVoice, rates, spokenWords, startSpeechGateway } from "../support/speech.ts";
import { someSound } from "../support/whisper.ts";

test("interface 5, Routes without a key: speech by the openai client with a key that is none", async (t) => {
  const gateway = await startSpeechGateway(t, {
    environment: { GATEWAY_LICENSE_KEY: "mgw-test-key-of-a-sufficient-length-0123456789" },
  });
  for (const prefix of ["/beta/v1", "/v1"]) {
    const client = new OpenAI({ baseURL: gateway.url + prefix, apiKey: "no key of ours", maxRetries: 0 });
    await t.test(`${prefix}: audio.transcriptions.create`, async () => {
      const file = await toFile(someSound(), "question.wav", { type: "audio/wav" });
      const { text } = await client.audio.transcriptions.create({ file, model: "whisper-1" });
      assert.equal(text.trim(), spokenWords);
      const plain = await client.audio.transcriptions.create({ file, model: "whisper-1", response_format: "text" });
      assert.equal(String(plain).trim(), spokenWords);
      const verbose = await client.audio.transcriptions.create({
        file,
        model: "whisper-1",
        response_format: "verbose_json",
      });
      assert.equal(verbose.text.trim(), spokenWords);
      assert.ok((verbose.segments ?? []).length > 0);
    });
    await t.test(`${prefix}: audio.speech.create`, async () => {
      for (const voice of [lowVoice, highVoice]) {
        const response = await client.audio.speech.create({ model: "tts-1", voice, input: "Hello from the gateway." });
        const sound = parseWav(new Uint8Array(await response.arrayBuffer()));
        assert.equal(sound.sampleRate, rates[voice]);
        assert.ok(sound.samples.length > 1_000);
      }
      const kept = await client.audio.speech.create({
        model: "tts-1",
        voice: "nova",
        input: "Hi.",
        response_format: "wav",
      });
      assert.equal(parseWav(new Uint8Array(await kept.arrayBuffer())).sampleRate, rates[highVoice]);
      await assert.rejects(
        client.audio.speech.create({ model: "tts-1", voice: lowVoice, input: "Hi.", response_format: "mp3" }),
        (error: unknown) => error instanceof OpenAI.BadRequestError && error.param === "response_format",
      );
      await assert.rejects(
        client.audio.speech.create({ model: "tts-1", voice: "xx_XX-nobody-low", input: "Hi." }),
        (error: unknown) => error instanceof OpenAI.NotFoundError && error.code === "voice_not_found",
      );
    });
  }

  await t.test("the typed client", async () => {
    const { speech } = createGatewayClient({ baseUrl: gateway.url });
    const sound = await speech.speak({ input: "Hello.", voice: lowVoice });
    assert.equal(parseWav(new Uint8Array(await sound.arrayBuffer())).sampleRate, rates[lowVoice]);
    assert.equal((await speech.transcribe(new Blob([new Uint8Array(someSound())]))).text.trim(), spokenWords);
    assert.deepEqual(await speech.voices.cached(), [highVoice, lowVoice]);
    assert.deepEqual(
      (await speech.voices.search("high")).map(({ key }) => key),
      [highVoice],
    );
    assert.deepEqual(await speech.transcriptionModels.cached(), ["ggml-said.en.bin"]);
    assert.equal((await speech.transcriptionModels.search("tiny")).length, 1);
  });
});
