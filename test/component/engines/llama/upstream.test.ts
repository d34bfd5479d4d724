// Requests to a model's process over sockets of the test's own, so that it can do what no HTTP library does: which connection each
// request takes, and what becomes of it when the process closes it.
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import type { GatewayError } from "../../../../src/core/errors.ts";
import type { Instance } from "../../../../src/engines/llama/instances.ts";
import { createUpstream, type Exchange, type UpstreamRequest } from "../../../../src/engines/llama/upstream.ts";
import { cleanUp } from "../../../support/clean-up.ts";
import { until } from "../../../support/scratch.ts";

/** Answers the request that is the n-th of all, from 1. */
type Answer = (socket: Socket, n: number) => void;

interface World {
  /** By connection: the requests that came on it. */
  readonly seen: string[][];
  readonly sockets: Socket[];
  ask(request?: Partial<UpstreamRequest>): Asked;
}

interface Asked {
  readonly exchange: Exchange;
  /** The body, or the error's message. */
  readonly over: Promise<string>;
}

async function world(t: TestContext, answer: Answer): Promise<World> {
  const seen: string[][] = [];
  const sockets: Socket[] = [];
  let requests = 0;
  const engine = createServer({ allowHalfOpen: true }, (socket) => {
    const mine: string[] = [];
    seen.push(mine);
    sockets.push(socket);
    let text = "";
    socket.on("error", () => socket.destroy());
    socket.on("data", (bytes: Buffer) => {
      text += bytes.toString("latin1");
      const [head = "", body] = text.split("\r\n\r\n");
      const length = Number(/content-length: (\d+)/.exec(head)?.[1] ?? 0);
      if (body === undefined || body.length < length) return;
      mine.push(text);
      text = "";
      answer(socket, ++requests);
    });
  });
  engine.listen(0, "127.0.0.1");
  await once(engine, "listening");
  cleanUp(t, () => {
    for (const socket of sockets) socket.destroy();
    engine.close();
  });
  const instance = {
    id: "acme/one:Q8_0",
    origin: `http://127.0.0.1:${(engine.address() as AddressInfo).port}`,
    key: "secret",
    workers: [],
  } as unknown as Instance;
  const cutOff = new AbortController().signal;
  const upstream = createUpstream({ probeAfterMs: 60_000, stallMs: 60_000, onStall: () => undefined, cutOff });
  cleanUp(t, () => upstream.close());
  return {
    seen,
    sockets,
    ask: (request = {}) => {
      const body: Buffer[] = [];
      let settle: (text: string) => void = () => undefined;
      const over = new Promise<string>((resolve) => (settle = resolve));
      const exchange = upstream.send(
        instance,
        { path: "/v1/chat/completions", body: [Buffer.from('{"a":'), Buffer.from("1}")], stream: false, ...request },
        {
          start: () => undefined,
          data: (bytes) => body.push(Buffer.from(bytes)) > 0,
          end: () => settle(Buffer.concat(body).toString()),
          fail: (error: GatewayError) => settle(error.message),
        },
      );
      return { exchange, over };
    },
  };
}

const whole = (text: string): string => `HTTP/1.1 200 OK\r\nContent-Length: ${text.length}\r\n\r\n${text}`;

test("a connection is used again after a whole answer, by one request at a time; a stream has one of its own", async (t) => {
  const { seen, ask } = await world(t, (socket, n) => socket.write(whole(`answer ${n}`)));
  assert.equal(await ask().over, "answer 1");
  assert.equal(await ask({ body: null, path: "/props" }).over, "answer 2");
  assert.deepEqual(seen, [
    [
      `POST /v1/chat/completions HTTP/1.1\r\nhost: ${seen[0]?.[0]?.match(/host: (\S+)/)?.[1]}\r\nconnection: keep-alive\r\nauthorization: Bearer secret\r\ncontent-type: application/json\r\ncontent-length: 7\r\n\r\n{"a":1}`,
      `GET /props HTTP/1.1\r\nhost: ${seen[0]?.[0]?.match(/host: (\S+)/)?.[1]}\r\nconnection: keep-alive\r\nauthorization: Bearer secret\r\n\r\n`,
    ],
  ]);
  await Promise.all([ask().over, ask().over]);
  assert.deepEqual(
    seen.map(({ length }) => length),
    [3, 1],
  );
  assert.equal(await ask({ stream: true }).over, "answer 5");
  assert.equal(await ask({ stream: true }).over, "answer 6");
  assert.equal(seen.flat().filter((text) => text.includes("connection: close")).length, 2);
});

test("after a stream a connection is there for the next one, and one that the process has closed meanwhile is not missed", async (t) => {
  const { seen, sockets, ask } = await world(t, (socket, n) => socket.write(whole(`answer ${n}`)));
  assert.equal(await ask({ stream: true }).over, "answer 1");
  await until("another connection is there", () => sockets.length === 2);
  assert.equal(await ask({ stream: true }).over, "answer 2");
  await until("and the next one", () => sockets.length === 3);
  assert.deepEqual(
    seen.map(({ length }) => length),
    [1, 1, 0],
  );
  sockets[2]?.end();
  await until("it is closed", () => sockets[2]?.destroyed === true);
  assert.equal(await ask({ stream: true }).over, "answer 3");
});

test("a large body arrives whole, in its order", async (t) => {
  const { seen, ask } = await world(t, (socket) => socket.write(whole("yes")));
  const body = [Buffer.alloc(300_000, "a"), Buffer.from("b"), Buffer.alloc(3_000_000, "c")];
  assert.equal(await ask({ body }).over, "yes");
  assert.equal(seen[0]?.[0]?.split("\r\n\r\n")[1], Buffer.concat(body).toString());
});

test("a kept connection that the process has closed is no failure: the request is repeated, once, on a new one", async (t) => {
  const { seen, sockets, ask } = await world(t, (socket, n) => {
    if (n === 2) socket.destroy();
    else socket.write(whole(`answer ${n}`));
  });
  assert.equal(await ask().over, "answer 1");
  assert.equal(await ask().over, "answer 3");
  assert.deepEqual(
    seen.map(({ length }) => length),
    [2, 1],
  );
  sockets[1]?.end();
  await until("it is closed", () => sockets[1]?.destroyed === true);
  assert.equal(await ask().over, "answer 4");
  assert.equal(seen.length, 3);
});

test("what is closed before it answered, or in the middle, is an error", async (t) => {
  const { seen, ask } = await world(t, (socket, n) => {
    if (n <= 2) return void socket.destroy();
    socket.end("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
  });
  assert.equal(await ask().over, "the engine broke off before it answered");
  assert.equal(seen.flat().length, 2);
  assert.equal(await ask({ stream: true }).over, "the engine broke off in the middle of the answer");
  assert.equal(seen.flat().length, 3);
});

test("an answer without a length ends with its connection; what is no answer is an error", async (t) => {
  const { ask } = await world(t, (socket, n) => {
    socket.end(n === 1 ? "HTTP/1.1 200 OK\r\n\r\nto the end" : "no HTTP\r\n\r\n");
  });
  assert.equal(await ask().over, "to the end");
  assert.match(await ask().over, /not an HTTP response: it has no status/);
});

test("the process hears of a client that left: of a large prompt by half of the connection, else by all of it", async (t) => {
  const { sockets, ask } = await world(t, () => undefined);
  let reads = 0;
  const large = ask({ onRead: () => reads++ });
  const small = ask();
  await until("both are there", () => sockets.length === 2);
  const [first, second] = sockets;
  large.exchange.abort();
  small.exchange.abort();
  assert.match(await large.over, /client/);
  await until("its half is closed", () => first?.readableEnded === true);
  await until("it is closed", () => second?.readableEnded === true);
  assert.equal(reads, 0);
  first?.end(whole("late"));
  await until("the prompt has been read", () => reads > 0);
});
