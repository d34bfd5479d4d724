// An upload on its way: one that stops coming, or comes in drops, or never ends is refused.
import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { describe, it } from "node:test";
import { type UploadRules, uploadBytes } from "../../../../src/http/speech/upload.ts";
import { patienceMs } from "../../../support/patience.ts";
import { refusal, until } from "../../../support/scratch.ts";

async function lengthOf(stream: PassThrough, rules: Partial<UploadRules> = {}): Promise<number> {
  const bytes = stream.iterator({ destroyOnReturn: false }) as AsyncIterator<Uint8Array>;
  const all = { limit: 8e6, stallMs: patienceMs, wholeMs: patienceMs, othersWait: () => true, ...rules };
  let length = 0;
  try {
    for await (const chunk of uploadBytes(bytes, all)) length += chunk.length;
    return length;
  } finally {
    void bytes.return?.();
  }
}

describe("an upload on its way", { concurrency: true }, () => {
  it("passes as it comes", async () => {
    const stream = new PassThrough();
    const work = lengthOf(stream);
    for (let sent = 0; sent < 48; sent++)
      if (!stream.write("x".repeat(64 * 1024))) await until("taken", () => !stream.writableNeedDrain);
    stream.end("end");
    assert.equal(await work, 48 * 64 * 1024 + 3);
  });

  it("that stops coming is refused, and so is one that comes in drops", async () => {
    const silent = new PassThrough();
    silent.write("x".repeat(100_000));
    assert.equal((await refusal(lengthOf(silent, { stallMs: 100 }))).code, "upload_stalled");
    const drops = new PassThrough();
    const dropping = setInterval(() => drops.write("x"), 20);
    assert.equal((await refusal(lengthOf(drops, { stallMs: 200 }))).code, "upload_stalled");
    clearInterval(dropping);
  });

  it("that never ends is refused once others wait, and not before", async () => {
    const steady = new PassThrough();
    let came = 0;
    const coming = setInterval(() => (came += 1) && steady.write(Buffer.alloc(20_000)), 10);
    let others = false;
    const refused = refusal(lengthOf(steady, { wholeMs: 100, othersWait: () => others }));
    await until("it is long overdue, and goes on", () => came > 30);
    assert.equal(steady.readableLength < 200_000, true);
    others = true;
    const error = await refused;
    clearInterval(coming);
    assert.equal(error.code, "upload_stalled");
    assert.match(error.message, /is not whole after 0\.1 s, and others wait/);
  });

  it("has a limit, and can be read on afterwards", async () => {
    const stream = new PassThrough();
    stream.write("x".repeat(11));
    assert.equal((await refusal(lengthOf(stream, { limit: 10 }))).code, "body_too_large");
    stream.end("rest");
    stream.resume();
    await until("it is through", () => stream.readableEnded);
  });
});
