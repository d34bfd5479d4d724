// An RPC worker that comes back by itself: it is used again, and no answer is cut for it.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { StatusReport } from "../../src/status/report.ts";
import { cleanUp } from "../support/clean-up.ts";
import { answersOf } from "../support/models.ts";
import { chatWith, patchWith } from "../support/requests.ts";
import { type RpcGateway, reachable, reloads, since, startRpcGateway } from "../support/rpc-gateway.ts";
import { startWorkers, type TestWorker } from "../support/rpc-worker.ts";

interface Stream {
  /** Resolves when so many more bytes have come. */
  more(bytes: number): Promise<void>;
  /** All that has come once it is over. */
  readonly text: Promise<string>;
  leave(): void;
}

/** An answer without end. */
async function startStream(t: TestContext, { url, model }: RpcGateway): Promise<Stream> {
  const left = new AbortController();
  cleanUp(t, () => left.abort());
  const response = await fetch(`${url}/beta/v1/chat/completions`, {
    ...chatWith(model, "forever", { stream: true }),
    signal: left.signal,
  });
  assert.equal(response.status, 200);
  let text = "";
  let wake: () => void = () => undefined;
  const read = async (): Promise<string> => {
    const decoder = new TextDecoder();
    try {
      for await (const chunk of response.body ?? []) {
        text += decoder.decode(chunk as Uint8Array, { stream: true });
        wake();
      }
    } catch (error) {
      if (!left.signal.aborted) throw error;
    }
    return text;
  };
  return {
    text: read(),
    more: async (bytes) => {
      const enough = text.length + bytes;
      while (text.length < enough) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
    leave: () => left.abort(),
  };
}

function waits({ rpc }: StatusReport): boolean {
  return rpc.workers.some(({ conditions }) => conditions.some(({ reason }) => reason === "WaitingForDrain"));
}

/** A gateway whose second worker has come back while an answer runs on the first alone. */
async function withReturned(
  t: TestContext,
): Promise<{ readonly gateway: RpcGateway; readonly stream: Stream; readonly workers: readonly TestWorker[] }> {
  const workers = await startWorkers(t, 2);
  await workers[1]?.kill();
  const gateway = await startRpcGateway(t, workers, { flags: ["--drain-timeout", "0.3"], answering: 1 });
  const stream = await startStream(t, gateway);
  await stream.more(1000);
  await workers[1]?.start();
  await gateway.until("back, and waiting", waits);
  return { gateway, stream, workers };
}

test("it waits until no answer is under way", async (t) => {
  const { gateway, stream, workers } = await withReturned(t);
  const before = reloads(gateway);
  assert.equal(reachable(gateway.gateway.status())[1], "True Answering");
  assert.equal((await gateway.inPreset()).length, 1);
  // Also while another setting changes that has nothing to do with it.
  await gateway.json("/api/desired", patchWith({ prune: true, allowEmpty: false }));
  await stream.more(3000);
  assert.deepEqual([reloads(gateway), (await gateway.inPreset()).length], [before, 1]);
  stream.leave();
  const leftAt = performance.now();
  assert.doesNotMatch(await stream.text, /error/);
  await gateway.until("taken back", (status) => !waits(status) && status.sync === "Synced");
  assert.deepEqual(
    await gateway.inPreset(),
    workers.map(({ address }) => address),
  );
  t.diagnostic(`taken back ${since(leftAt)} after the last answer`);
  assert.equal(await gateway.ask(gateway.model), answersOf("acme/talker").hello);
});

test("somebody's edit of the roster takes it in, within the drain's time", async (t) => {
  const { gateway, stream } = await withReturned(t);
  await gateway.json("/api/desired", patchWith({ rpc: { minWorkers: 1 } }));
  assert.match(await stream.text, /reloaded or unloaded for a change.*--drain-timeout/);
  await gateway.converged();
  assert.equal((await gateway.inPreset()).length, 2);
});
