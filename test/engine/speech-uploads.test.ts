// Large uploads through the whole gateway: they pass through it and do not stay in it, and have a limit.
import assert from "node:assert/strict";
import { request } from "node:http";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { wavHeader } from "../../src/speech/wav.ts";
import { cleanUp } from "../support/clean-up.ts";
import { codeOf } from "../support/own-calls.ts";
import { soundForm, spokenWords, startSpeechGateway } from "../support/speech.ts";
import { someSound } from "../support/whisper.ts";

const boundary = "----speech-test-boundary";
const head = Buffer.from(
  `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\nContent-Type: audio/wav\r\n\r\n`,
);
const tail = Buffer.from(`\r\n--${boundary}--\r\n`);

/** Sends so many bytes, as fast as they are taken; `announced` says how many in advance. */
function sendUpload(
  url: string,
  bytes: number,
  announced: boolean,
  onChunk: () => void = () => undefined,
): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const upload = request(`${url}/v1/audio/transcriptions`, {
      method: "POST",
      headers: {
        "content-type": `multipart/form-data; boundary=${boundary}`,
        ...(announced ? { "content-length": head.length + 44 + bytes + tail.length } : {}),
      },
    });
    let answered = false;
    upload.on("response", (response) => {
      answered = true;
      let body = "";
      response.on("data", (chunk: Buffer) => (body += chunk.toString()));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, body }));
    });
    upload.on("error", (error) => (answered ? undefined : reject(error)));
    upload.write(head);
    // Two seconds of sound, and then what no sound is: an hour of it would keep the engine busy for half a minute.
    upload.write(wavHeader({ sampleRate: 16_000, channels: 1 }, 64_000));
    const chunk = Buffer.alloc(64 * 1024);
    let left = bytes;
    const more = (): void => {
      while (left > 0 && !answered) {
        const size = Math.min(left, chunk.length);
        left -= size;
        onChunk();
        if (!upload.write(chunk.subarray(0, size))) {
          upload.once("drain", more);
          return;
        }
      }
      upload.end(tail);
    };
    more();
  });
}

test("100 MB pass through, and the gateway's memory stays what it was", async (t) => {
  const gateway = await startSpeechGateway(t);
  assert.equal((await gateway.json("/v1/audio/transcriptions", soundForm(someSound()))).status, 200);
  globalThis.gc?.();
  const before = process.memoryUsage().rss;
  let most = 0;
  const began = performance.now();
  const bytes = 100 * 1024 * 1024;
  const work = sendUpload(gateway.url, bytes, true, () => {
    most = Math.max(most, process.memoryUsage().rss);
  });
  const { status } = await work;
  const grown = (most - before) / 1024 / 1024;
  t.diagnostic(`100 MB: ${status} after ${Math.round(performance.now() - began)} ms, ${Math.round(grown)} MB more`);
  assert.ok(grown < 90, `${grown} MB`);
  const after = await gateway.json("/v1/audio/transcriptions", soundForm(someSound()));
  assert.equal((after.body["text"] as string).trim(), spokenWords);
});

test("a client that asks before it sends too much is refused before it has sent any of it", async (t) => {
  const gateway = await startSpeechGateway(t, { flags: ["--upload-limit", "1000000", "--body-limit", "1000000"] });
  const { hostname, port } = new URL(gateway.url);
  const answerTo = async (bytes: number, end: RegExp): Promise<string> => {
    const socket = connect(Number(port), hostname);
    cleanUp(t, () => socket.destroy());
    socket.write(
      `POST /v1/audio/transcriptions HTTP/1.1\r\nHost: ${hostname}:${port}\r\nExpect: 100-continue\r\nContent-Type: multipart/form-data; boundary=${boundary}\r\nContent-Length: ${bytes}\r\n\r\n`,
    );
    let text = "";
    for await (const chunk of socket) if (end.test((text += String(chunk)))) break;
    return text;
  };
  assert.match(await answerTo(1_000_001, /body_too_large/), /^HTTP\/1\.1 413 /);
  assert.match(await answerTo(1_000_000, /100 Continue/), /^HTTP\/1\.1 100 Continue/);
});

test("an upload has a limit, announced or not, and one that is cut off frees the engine", async (t) => {
  const gateway = await startSpeechGateway(t, { flags: ["--upload-limit", "1000000"] });
  assert.equal((await gateway.json("/v1/audio/transcriptions", soundForm(someSound()))).status, 200);
  for (const announced of [true, false]) {
    const { status, body } = await sendUpload(gateway.url, 3_000_000, announced);
    assert.deepEqual([status, codeOf({ body: JSON.parse(body) as Record<string, unknown> })], [413, "body_too_large"]);
  }
  const socket = await beginUpload(gateway.url);
  await gateway.until("it has its turn", ({ speech }) => speech.transcription?.inFlight === 1);
  socket.destroy();
  await gateway.until("it is free", ({ speech }) => speech.transcription?.inFlight === 0);
  assert.equal((await gateway.json("/v1/audio/transcriptions", soundForm(someSound()))).status, 200);
});

/** The beginning of an upload whose rest does not come. */
async function beginUpload(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  await new Promise((resolve) => socket.once("connect", resolve));
  socket.write(
    `POST /v1/audio/transcriptions HTTP/1.1\r\nHost: ${hostname}:${port}\r\nContent-Type: multipart/form-data; boundary=${boundary}\r\nContent-Length: 500000\r\n\r\n`,
  );
  socket.write(head);
  return socket;
}
