// The speech routes where speech is off, or on without an engine: what they take, and that they say how it is turned on.
import assert from "node:assert/strict";
import { request } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { startTestGateway, type TestGateway } from "../support/gateway.ts";
import { onListening } from "../support/listening.ts";
import { startLoopbackHub } from "../support/loopback-hub.ts";
import { codeOf, messageOf } from "../support/own-calls.ts";
import { postWith } from "../support/requests.ts";
import { writeVoice } from "../support/sherpa.ts";

const search = ["/api/tts/voices/search", "/api/stt/models/search"];
const cached = ["/api/tts/voices/cached", "/api/stt/models/cached"];

/** Announces a large upload, sends none of it, and answers with the status that comes all the same. */
function announceUpload(gateway: TestGateway, path: string, type: string): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const upload = request(gateway.url + path, {
      method: "POST",
      headers: { "content-type": type, "content-length": String(4 * 1024 ** 3) },
    });
    upload.on("response", (response) => {
      let body = "";
      response.on("data", (chunk: Buffer) => {
        body += chunk.toString();
      });
      response.on("end", () => {
        upload.destroy();
        resolve({ status: response.statusCode ?? 0, body });
      });
    });
    upload.on("error", reject);
    upload.flushHeaders();
  });
}

const on = "speech: { transcription: { model: base.en }, synthesis: { voice: en_US-lessac-medium } }";

const wrongQueries = [
  ...cached.map((each) => `${each}?q=en`),
  ...search.map((each) => `${each}?query=en`),
  `${search[0]}?q=a&q=b`,
];
const wrongSpeech = [
  [{ voice: "x" }, "input", /input is missing/],
  [{ input: "", voice: "x" }, "input", /input must not be empty/],
  [{ input: "hi", voice: 5 }, "voice", /voice must be a string/],
  [{ input: 1, speed: "fast" }, "voice", /voice is missing; input must be a string; speed must be a number/],
  [{ input: "hi", voice: "x", response_format: "mp3" }, "response_format", /must be one of wav, pcm/],
  [{ input: "hi", voice: "x", speed: 5 }, "speed", /speed must be <= 4/],
  [{ input: "x".repeat(100_001), voice: "x" }, "input", /input must NOT have more than 100000 characters/],
  [{ input: "hi", voice: null }, "voice", /voice is missing/],
  [{ input: "hi", voice: "a/b", speed: null }, "voice", /"a\/b" can be no voice/],
  [[], null, /JSON object/],
] as const;

test("interface 4, Speech is off: all six routes say so whatever is asked, and need no license key", async (t) => {
  const gateway = await startTestGateway(t, {
    yaml: "version: 1\n",
    environment: { GATEWAY_LICENSE_KEY: "mgw-test-key-of-a-sufficient-length-0123456789" },
  });

  await t.test("voices and transcription models", async () => {
    const good = [...cached, ...search, ...search.map((each) => `${each}?q=en`), `${search[0]}?q=`];
    for (const path of [...good, ...wrongQueries]) {
      const answer = await gateway.json(path);
      assert.deepEqual([answer.status, codeOf(answer)], [503, "speech_off"], path);
      assert.match((answer.body["error"] as { hint: string }).hint, /gateway\.yaml/);
    }
  });

  for (const prefix of ["/beta/v1", "/v1"]) {
    await t.test(`speech below ${prefix}, in the family's shape`, async () => {
      const path = `${prefix}/audio/speech`;
      const good = { input: "Hello", voice: "en_US-lessac-medium", model: "any", speed: 1.5, response_format: "wav" };
      const bodies = [good, {}, ...wrongSpeech.map(([body]) => body)].map((body) => JSON.stringify(body));
      for (const body of [...bodies, "", "no JSON", '{"input": "hi",}']) {
        const answer = await gateway.json(path, { ...postWith({}), body });
        assert.equal(answer.status, 503, body.slice(0, 100));
        assert.deepEqual(
          { ...(answer.body["error"] as object), message: undefined },
          { message: undefined, type: "server_error", param: null, code: "speech_off" },
        );
      }
      const plain = await gateway.json(path, { method: "POST", body: "hello" });
      assert.deepEqual([plain.status, codeOf(plain)], [503, "speech_off"]);
    });

    await t.test(`transcriptions below ${prefix}: refused before the upload is read`, async () => {
      const path = `${prefix}/audio/transcriptions`;
      for (const type of ["multipart/form-data; boundary=x", "audio/wav"]) {
        const form = await announceUpload(gateway, path, type);
        assert.deepEqual(
          [form.status, (JSON.parse(form.body) as { error: { code: string } }).error.code],
          [503, "speech_off"],
        );
      }
      const data = new FormData();
      data.set("file", new Blob([Buffer.alloc(300_000)]), "a.wav");
      const sent = await gateway.json(path, { method: "POST", body: data });
      assert.deepEqual([sent.status, codeOf(sent)], [503, "speech_off"]);
      const none = await gateway.json(path, { method: "POST" });
      assert.deepEqual([none.status, codeOf(none)], [503, "speech_off"]);
    });
  }
});

test("speech that is on refuses what is wrong with a request, without an engine", async (t) => {
  const gateway = await startTestGateway(t, { yaml: `version: 1\n${on}\n` });

  await t.test("voices and transcription models", async () => {
    for (const path of wrongQueries) {
      const answer = await gateway.json(path);
      assert.deepEqual([answer.status, codeOf(answer)], [400, "invalid_request"], path);
    }
  });

  for (const prefix of ["/beta/v1", "/v1"]) {
    await t.test(`speech below ${prefix}`, async () => {
      const path = `${prefix}/audio/speech`;
      for (const [body, param, text] of wrongSpeech) {
        const refused = await gateway.json(path, postWith(body));
        assert.equal(refused.status, 400, JSON.stringify(body));
        assert.match(messageOf(refused), text);
        assert.equal((refused.body["error"] as { param: unknown }).param, param);
      }
      const broken = await gateway.json(path, { ...postWith({}), body: '{"input": "hi",}' });
      assert.deepEqual(
        [broken.status, messageOf(broken)],
        [400, 'the body is no JSON: line 1, column 16: unexpected "}"'],
      );
    });

    await t.test(`transcriptions below ${prefix}: refused before the upload is read`, async () => {
      const path = `${prefix}/audio/transcriptions`;
      const other = await announceUpload(gateway, path, "audio/wav");
      assert.deepEqual(
        [other.status, (JSON.parse(other.body) as { error: { code: string } }).error.code],
        [415, "unsupported_media_type"],
      );
      assert.equal((await gateway.json(path, { method: "POST" })).status, 415);
    });
  }
});

test("while the hub is away and never answered, the search is refused, and voices on the disk are listed", async (t) => {
  const hub = await startLoopbackHub(t);
  await hub.close();
  const gateway = await startTestGateway(t, {
    yaml: `version: 1\n${on}\n`,
    environment: { HF_ENDPOINT: hub.endpoint },
  });
  const none = await gateway.json("/api/tts/voices/search?q=english");
  assert.deepEqual([none.status, codeOf(none)], [502, "hub_unreachable"]);
  await writeVoice(join(gateway.stateDir, "voices"), "en_US-tone-low");
  const here = await gateway.json("/api/tts/voices/cached");
  assert.deepEqual([here.status, here.body["voices"]], [200, ["en_US-tone-low"]]);
});

test("who asks before gateway.yaml has been read waits for it", async (t) => {
  const asked: Promise<unknown>[] = [];
  const ask = async (url: string, init?: RequestInit): Promise<unknown> => {
    const response = await fetch(url, init);
    return [response.status, await response.json()];
  };
  await startTestGateway(t, {
    yaml: `version: 1\n${on}\n`,
    ...onListening((url) => {
      asked.push(ask(`${url}${cached[0]}`), ask(`${url}${cached[1]}`));
      asked.push(ask(`${url}/v1/audio/speech`, postWith({ input: "...", voice: "en_US-lessac-medium" })));
    }),
  });
  const [voices, models, speech] = await Promise.all(asked);
  assert.deepEqual(voices, [200, { voices: [] }]);
  assert.deepEqual(models, [200, { models: [] }]);
  assert.equal((speech as [number])[0], 400);
});
