// An answer that comes faster than its client reads: nothing of it piles up on the way, and a client that does not read at all
// is dropped. The engine is a server of the test's own, as it must talk faster than any model does.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { type TestContext, test } from "node:test";
import Fastify from "fastify";
import type { Instance } from "../../../../src/engines/llama/instances.ts";
import { createUpstream } from "../../../../src/engines/llama/upstream.ts";
import { passThrough } from "../../../../src/http/openai/pass-through.ts";
import { runGeneration } from "../../../../src/http/proxy/exchange.ts";
import type { ExchangeDeps } from "../../../../src/http/proxy/generation.ts";
import { createInFlight } from "../../../../src/http/proxy/in-flight.ts";
import { limitSilence } from "../../../../src/http/server/server-limits.ts";
import { createRequestMeters } from "../../../../src/metrics/requests.ts";
import type { CachedModel } from "../../../../src/plan/observed.ts";
import { cleanUp } from "../../../support/clean-up.ts";
import { rawClient, rawGet } from "../../../support/raw-client.ts";
import { until } from "../../../support/scratch.ts";

const frame = (n: number): string => `data: ${n} ${"x".repeat(10_000 + ((n * 997) % 10_000))}\n\n`;

interface World {
  readonly url: string;
  /** Bytes that the engine could say. */
  said(): number;
  /** Bytes that wait in the gateway for the client. */
  kept(): number;
  /** The engine is being listened to. */
  isHeard(): boolean;
  /** Answers under way. */
  leases(): number;
}

async function world(t: TestContext, writeStallMs: number, othersWait: () => boolean = () => false): Promise<World> {
  let heard: Socket | null = null;
  const engine = createServer((request, response: ServerResponse) => {
    if (request.url === "/health") return void response.end("{}");
    heard = request.socket;
    response.writeHead(200, { "content-type": "text/event-stream" });
    let said = 0;
    const talk = (): void => {
      while (!response.destroyed && response.write(frame(said++)));
    };
    response.on("drain", talk);
    talk();
  });
  engine.listen(0, "127.0.0.1");
  await once(engine, "listening");
  cleanUp(t, () => {
    engine.closeAllConnections();
    engine.close();
  });

  let leases = 0;
  const instance: Instance = {
    id: "acme/endless:Q8_0",
    origin: `http://127.0.0.1:${(engine.address() as AddressInfo).port}`,
    key: "none",
    ctxSize: null,
    nCtx: null,
    pid: null,
    workers: [],
    slots: 4,
    task: "completion",
    retain: () => () => undefined,
  };
  const cutOff = new AbortController().signal;
  const upstream = createUpstream({ probeAfterMs: 800, stallMs: 60_000, onStall: () => undefined, cutOff });
  cleanUp(t, () => upstream.close());
  const deps = {
    upstream,
    chatContext: {
      tryAcquire: () => {
        leases++;
        return { instance, overdue: () => null, release: () => leases-- };
      },
    },
    scheduler: { keepsWaiting: othersWait },
    prompts: { enter: () => Promise.resolve(null) },
    inFlight: createInFlight(),
    unreadMs: 1_000,
    idle: { keep: () => undefined },
    cutOff: new AbortController().signal,
    onFailure: () => undefined,
    meters: createRequestMeters().family("openai"),
  } as unknown as ExchangeDeps;
  const app = Fastify({ forceCloseConnections: true });
  limitSilence(app.server, writeStallMs);
  let client: Socket | null = null;
  app.server.on("connection", (socket: Socket) => {
    client = socket;
  });
  app.get("/", (_request, reply) => {
    reply.hijack();
    runGeneration(deps, reply.raw, {
      model: { id: instance.id, upstreamId: instance.id } as CachedModel,
      path: "/v1/chat/completions",
      route: "/chat/completions",
      body: [Buffer.from("{}")],
      stream: true,
      translator: passThrough("done"),
    });
  });
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  cleanUp(t, () => app.close());
  return {
    url,
    said: () => (heard === null ? 0 : heard.bytesWritten - heard.writableLength),
    kept: () => client?.writableLength ?? 0,
    isHeard: () => heard !== null && !heard.destroyed,
    leases: () => leases,
  };
}

/** Resolves when the engine could say nothing more for a while. */
async function silenced({ said }: World): Promise<number> {
  let last = -1;
  let since = performance.now();
  return until("the engine has to wait", () => {
    if (said() !== last) since = performance.now();
    last = said();
    return performance.now() - since > 250 && last > 0 ? last : null;
  });
}

test("an answer that nobody reads makes the engine wait; read again, it goes on; left, it ends", async (t) => {
  const endless = await world(t, 60_000);
  const client = await rawClient(t, endless.url);
  client.socket.pause();
  client.send(rawGet("/"));
  const said = await silenced(endless);
  // What the kernel keeps on both ways, and little more.
  assert.ok(said < 40e6, `${said} bytes`);
  assert.ok(endless.kept() < 2e6, `${endless.kept()} bytes in the gateway`);

  client.socket.resume();
  await until("it goes on", () => endless.said() > said + 20e6);
  assert.equal(endless.leases(), 1);
  client.socket.destroy();
  await until("nobody listens to the engine", () => !endless.isHeard());
  await until("the lease is given back", () => endless.leases() === 0);
});

test("a fast stream arrives as it was said, whether its client keeps up or stops reading in between", async (t) => {
  const endless = await world(t, 60_000);
  const response = await fetch(endless.url);
  let text = "";
  let [next, stop] = [0, 500];
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk).toString("latin1");
    for (let end; (end = text.indexOf("\n\n") + 2) > 1; text = text.slice(end), next++)
      assert.ok(text.slice(0, end) === frame(next), `frame ${next}`);
    if (next >= 4_000) break;
    if (next < stop) continue;
    await silenced(endless);
    stop += 1_000;
  }
  assert.ok(next >= 4_000);
  await until("the lease is given back", () => endless.leases() === 0);
});

test("a client that reads nothing for long is dropped; one that reads a little at a time is not", async (t) => {
  const endless = await world(t, 1_000);
  const deaf = await rawClient(t, endless.url);
  deaf.socket.pause();
  deaf.send(rawGet("/"));
  await until("it is being answered", () => endless.said() > 0);
  await until("it is dropped", () => endless.leases() === 0);
  await until("nobody listens to the engine", () => !endless.isHeard());

  const slow = await rawClient(t, endless.url);
  slow.send(rawGet("/"));
  let read = 0;
  slow.socket.on("data", (chunk: string) => {
    slow.forget();
    read += chunk.length;
    slow.socket.pause();
    setTimeout(() => slow.socket.resume(), 2);
  });
  const began = performance.now();
  await until("it has read for longer than that", () => performance.now() - began > 3_000);
  assert.equal(endless.leases(), 1);
  assert.ok(read > 0);
  slow.socket.destroy();
  await until("it has left", () => endless.leases() === 0);
});

test("while others wait, an answer that nobody reads is cut; one that is read is not, however slowly", async (t) => {
  let othersWait = false;
  const endless = await world(t, 60_000, () => othersWait);
  const deaf = await rawClient(t, endless.url);
  deaf.socket.pause();
  deaf.send(rawGet("/"));
  await silenced(endless);
  const slow = await rawClient(t, endless.url);
  slow.send(rawGet("/"));
  slow.socket.on("data", () => {
    slow.forget();
    slow.socket.pause();
    setTimeout(() => slow.socket.resume(), 5);
  });
  await until("both are answered", () => endless.leases() === 2);
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  assert.equal(endless.leases(), 2, "nobody waits");
  othersWait = true;
  await until("the deaf one is cut", () => endless.leases() === 1);
  await new Promise((resolve) => setTimeout(resolve, 2_500));
  assert.deepEqual([endless.leases(), slow.socket.closed], [1, false]);
  slow.socket.destroy();
  await until("it has left", () => endless.leases() === 0);
});

test("silence on both sides is a model that computes, and no reason to end anything", async (t) => {
  const app = Fastify({ forceCloseConnections: true });
  limitSilence(app.server, 300);
  app.get("/", async () => {
    await new Promise((resolve) => setTimeout(resolve, 900));
    return "late";
  });
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  cleanUp(t, () => app.close());
  // Not Node's own fetch: on a busy machine its connection was silent for too long before the request, and it waited for ever.
  const client = await rawClient(t, url);
  client.send(rawGet("/"));
  await client.until(/late$/);
});
