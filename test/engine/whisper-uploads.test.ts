// Uploads to the real whisper-server, large and broken off: what we hold of them, and what their clients are told.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { describe, it, type TestContext } from "node:test";
import { toGatewayError } from "../../src/core/errors.ts";
import type { Whisper } from "../../src/engines/whisper.ts";
import { cleanUp } from "../support/clean-up.ts";
import { until } from "../support/scratch.ts";
import { form, heard, someSound, startedWhisper, upload } from "../support/whisper.ts";

const never = new AbortController().signal;

describe("an upload of 100 MB", () => {
  it("goes through as fast as the engine takes it, and we never hold more than a little of it", async (t) => {
    const { whisper } = await startedWhisper(t);
    const pid = whisper.snapshot().pid ?? 0;
    // Two seconds of sound, and then what no sound is.
    const head = form({ file: someSound() });
    const closing = head.lastIndexOf("\r\n------");
    const chunk = Buffer.alloc(256 * 1024, "x");
    let sent = 0;
    async function* pieces(): AsyncGenerator<Buffer> {
      yield head.subarray(0, closing);
      for (; sent < 100 * 1024 * 1024; sent += chunk.length) yield chunk;
      yield head.subarray(closing);
    }
    process.kill(pid, "SIGSTOP");
    const work = whisper.transcribe(upload(Readable.from(pieces())));
    // What is taken from the client while the engine takes nothing is what we and the system hold.
    let last = -1;
    await until("no more is taken", async () => {
      await new Promise((resolve) => setTimeout(resolve, 100));
      const isStill = sent === last;
      last = sent;
      return isStill && sent > 0;
    });
    process.kill(pid, "SIGCONT");
    assert.ok(last < 12 * 1024 * 1024, `${last} bytes`);
    assert.equal(Buffer.from((await work).body).toString(), '{"text":" hello from the ear\\n"}');
    assert.ok(sent >= 100 * 1024 * 1024);
  });
});

describe("an upload over HTTP", { concurrency: true }, () => {
  /** A server that passes what it gets on, and what came of each request. */
  async function serve(t: TestContext, whisper: Whisper): Promise<{ port: number; outcomes: string[] }> {
    const outcomes: string[] = [];
    const server = createServer((request, response) => {
      const work = whisper.transcribe({
        ...upload(Buffer.alloc(0)),
        contentLength: null,
        body: () => request.iterator({ destroyOnReturn: false }),
        waiting: never,
        signal: never,
      });
      void work
        .then(
          ({ body }) => [200, Buffer.from(body)] as const,
          (error: unknown) => {
            const { status, code } = toGatewayError(error);
            return [status, Buffer.from(code)] as const;
          },
        )
        .then(([status, body]) => {
          outcomes.push(status === 200 ? "heard" : body.toString());
          response.writeHead(status).end(body);
        });
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    cleanUp(t, () => server.close());
    return { port: (server.address() as AddressInfo).port, outcomes };
  }

  it("is answered, and so is one whose engine dies in the middle of it", async (t) => {
    const { whisper } = await startedWhisper(t);
    const { port } = await serve(t, whisper);
    const body = form({ file: someSound() });
    const good = await fetch(`http://127.0.0.1:${port}/`, { method: "POST", body });
    assert.equal(await good.text(), '{"text":" hello from the ear\\n"}');
    const call = request({ port, method: "POST", headers: { connection: "close" } });
    const answered = once(call, "response") as Promise<[IncomingMessage]>;
    call.write(body.subarray(0, 300));
    await until("it is being sent", () => whisper.snapshot().busy);
    process.kill(whisper.snapshot().pid ?? 0, "SIGKILL");
    await until("its end is noticed", () => whisper.snapshot().phase === "stopped");
    call.end(body.subarray(300));
    const [response] = await answered;
    assert.equal(response.statusCode, 502);
    assert.equal(await text(response), "upstream_failed");
  });

  it("whose client goes away is the client's doing", async (t) => {
    const { whisper } = await startedWhisper(t);
    const { port, outcomes } = await serve(t, whisper);
    const call = request({ port, method: "POST" });
    call.on("error", () => undefined);
    call.write(form({ file: someSound() }).subarray(0, 300));
    await until("it is being sent", () => whisper.snapshot().busy);
    call.destroy();
    await until("that is noticed", () => outcomes.length > 0);
    assert.deepEqual(outcomes, ["cancelled"]);
    assert.equal(await heard(whisper), '{"text":" hello from the ear\\n"}');
  });
});
