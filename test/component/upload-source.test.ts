// An upload on its way: its beginning can be had again, and one that stops coming, or comes in drops, is given up.
import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { describe, it } from "node:test";
import { createUploadSource, type UploadRules, type UploadSource } from "../../src/http/speech/upload-source.ts";
import { refusal, until } from "../support/scratch.ts";

async function textOf(source: UploadSource): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of source.open()) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

function sourceOf(stream: PassThrough, rules: Partial<UploadRules> = {}): UploadSource {
  return createUploadSource(stream.iterator({ destroyOnReturn: false }), {
    limit: 8e6,
    stallMs: 10_000,
    wholeMs: 10_000,
    othersWait: () => true,
    ...rules,
  });
}

describe("an upload on its way", { concurrency: true }, () => {
  it("begins again for the next reader, also while the one before still waits for bytes", async () => {
    const stream = new PassThrough();
    const source = sourceOf(stream);
    assert.equal(source.hasBegun(), false);
    stream.write("one ");
    const first = source.open();
    assert.equal(Buffer.from((await first.next()).value ?? []).toString(), "one ");
    // Given up in the middle of waiting, as the engine's end does.
    const abandoned = first.next();
    const second = textOf(source);
    stream.write("two ");
    stream.end("three");
    assert.equal(await second, "one two three");
    await abandoned;
    assert.equal(await textOf(source), "one two three");
    assert.deepEqual([source.canRepeat(), source.hasBegun()], [true, true]);
  });

  it("is not kept once it is large, and none of it is lost on its way", async () => {
    const stream = new PassThrough();
    const source = sourceOf(stream);
    const work = textOf(source);
    const chunk = "x".repeat(64 * 1024);
    for (let sent = 0; sent < 3e6; sent += chunk.length)
      if (!stream.write(chunk)) await until("taken", () => !stream.writableNeedDrain);
    stream.end("end");
    const text = await work;
    assert.equal(text.length, Math.ceil(3e6 / chunk.length) * chunk.length + 3);
    assert.equal(source.canRepeat(), false);
  });

  it("that stops coming is given up, and so is one that comes in drops", async () => {
    const silent = new PassThrough();
    silent.write("x".repeat(100_000));
    assert.equal((await refusal(textOf(sourceOf(silent, { stallMs: 100 })))).code, "upload_stalled");
    const drops = new PassThrough();
    const dropping = setInterval(() => drops.write("x"), 20);
    assert.equal((await refusal(textOf(sourceOf(drops, { stallMs: 200 })))).code, "upload_stalled");
    clearInterval(dropping);
  });

  it("that comes for ever is given up once others wait, and not before", async () => {
    const steady = new PassThrough();
    let came = 0;
    const coming = setInterval(() => (came += 1) && steady.write(Buffer.alloc(20_000)), 10);
    let others = false;
    const rules = { wholeMs: 100, othersWait: () => others };
    const given = refusal(textOf(sourceOf(steady, rules)));
    await until("it is long overdue, and goes on", () => came > 30);
    assert.equal(steady.readableLength < 200_000, true);
    others = true;
    const error = await given;
    clearInterval(coming);
    assert.equal(error.code, "upload_stalled");
    assert.match(error.message, /was not whole 0\.1 s after its turn had begun/);
  });

  it("has a limit, and can be read by others afterwards", async () => {
    const stream = new PassThrough();
    const source = sourceOf(stream, { limit: 10 });
    stream.write("x".repeat(11));
    assert.equal((await refusal(textOf(source))).code, "body_too_large");
    await source.close();
    stream.end("rest");
    stream.resume();
    await until("it is through", () => stream.readableEnded);
  });
});
