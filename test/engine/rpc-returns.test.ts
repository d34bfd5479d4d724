// An RPC worker that comes back by itself: it is used again, and no answer is cut for it.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { cleanUp } from "../support/clean-up.ts";
import { answersOf } from "../support/models.ts";
import { chatWith } from "../support/requests.ts";
import { type RpcGateway, reachable, reloads, startRpcGateway } from "../support/rpc-gateway.ts";
import { startWorkers } from "../support/rpc-worker.ts";

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

test("it is used again once the answers under way have ended", async (t) => {
  const workers = await startWorkers(t, 2);
  await workers[1]?.kill();
  const gateway = await startRpcGateway(t, workers, { flags: ["--drain-timeout", "30"], answering: 1 });
  const before = reloads(gateway);
  const stream = await startStream(t, gateway);
  await stream.more(1000);
  await workers[1]?.start();
  await gateway.until("back", (status) => reachable(status)[1] === "True Answering");
  await stream.more(3000);
  assert.equal(reloads(gateway), before);
  stream.leave();
  assert.doesNotMatch(await stream.text, /error/);
  await gateway.converged();
  assert.deepEqual(
    await gateway.inPreset(),
    workers.map(({ address }) => address),
  );
  assert.equal(await gateway.ask(gateway.model), answersOf("acme/talker").hello);
});
