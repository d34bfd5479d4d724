// Short pieces of a response go past Node's framing to the socket: they keep order and frames, whichever client reads them.
import assert from "node:assert/strict";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { RawReply, streamHeaders } from "../../../../src/http/server/raw-reply.ts";
import { cleanUp } from "../../../support/clean-up.ts";
import { rawClient, rawGet } from "../../../support/raw-client.ts";
import { until } from "../../../support/scratch.ts";

/** A client, the responses to its requests, which the test writes, and the halves of its connection that it has closed. */
async function repliesOf(t: TestContext) {
  const replies: RawReply[] = [];
  let drained = 0;
  let halves = 0;
  const server = createServer((_request, response: ServerResponse) => {
    const reply = new RawReply(response, { drained: () => drained++, left: () => undefined });
    reply.head(200, streamHeaders("text/plain"));
    replies.push(reply);
  });
  server.on("connection", (socket) => socket.once("end", () => halves++));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanUp(t, () => new Promise((resolve) => server.close(resolve)));
  const { port } = server.address() as AddressInfo;
  const client = await rawClient(t, `http://127.0.0.1:${port}`);
  const asked = async (text: string, count: number): Promise<readonly RawReply[]> => {
    client.send(text);
    await until("the requests have come", () => replies.length === count);
    return replies;
  };
  return { client, asked, drained: () => drained, halves: () => halves };
}

const bodiesIn = (text: string): string[] => text.split(/HTTP\/1\.1 200 OK[^]*?\r\n\r\n/).slice(1);
const [short, long] = [10_000, 20_000].map((length) => "b".repeat(length)) as [string, string];

/** The text of a body in frames; newer Nodes put pieces of one tick into one. */
function unframed(body: string): string {
  let rest = Buffer.from(body);
  let text = "";
  for (;;) {
    const start = rest.indexOf("\r\n") + 2;
    const end = start + Number.parseInt(rest.toString("latin1", 0, start), 16);
    text += rest.toString("utf8", start, end);
    assert.equal(rest.toString("latin1", end, end + 2), "\r\n");
    rest = rest.subarray(end + 2);
    if (start === end) break;
  }
  assert.equal(rest.length, 0);
  return text;
}

test("a response that waits for its turn on the connection", async (t) => {
  const { client, asked } = await repliesOf(t);
  const [first, second] = await asked(rawGet("/") + rawGet("/"), 2);
  for (const piece of ["c", "dé"]) second?.write(Buffer.from(piece));
  for (const piece of ["a", "é", "", long, "!"]) first?.write(Buffer.from(piece));
  first?.end();
  await client.until(/dé/);
  second?.write(Buffer.from("e"));
  second?.end();
  const bodies = bodiesIn(await client.until(/e\r\n0\r\n\r\n$/));
  // Not by their difference, which would be all of it.
  assert.equal(bodies.map(unframed).join("|") === `aé${long}!|cdée`, true);
});

test("a client of HTTP/1.0 gets no frames", async (t) => {
  const { client, asked } = await repliesOf(t);
  const [reply] = await asked(rawGet("/").replace("HTTP/1.1", "HTTP/1.0"), 1);
  for (const piece of ["a", "b", "c"]) reply?.write(Buffer.from(piece));
  reply?.end();
  const { text } = await client.ended();
  assert.deepEqual(bodiesIn(text), ["abc"]);
});

/** Each is on its way before the next one, until the kernel takes no more; their count. */
async function blocked(reply: RawReply | undefined): Promise<number> {
  let count = 0;
  for (; !reply?.isBlocked(); count++) {
    reply?.write(Buffer.from(short));
    await setImmediate();
  }
  return count;
}

const textIn = (text: string): number | undefined => bodiesIn(text)[0]?.match(/b/g)?.length;

test("a client that reads too slowly gets all of it, and the writer hears when it can go on", async (t) => {
  const { client, asked, drained } = await repliesOf(t);
  const [reply] = await asked(rawGet("/"), 1);
  client.socket.pause();
  const count = await blocked(reply);
  assert.equal(drained(), 0);
  client.socket.resume();
  await until("the client has read", () => drained() === 1 && reply?.isBlocked() === false);
  reply?.write(Buffer.from("!"));
  reply?.end();
  assert.equal(textIn(await client.until(/!\r\n0\r\n\r\n$/)), count * short.length);
});

test("a slow client that closes its half gets what was sent before", async (t) => {
  const { client, asked, halves } = await repliesOf(t);
  const [reply] = await asked(rawGet("/"), 1);
  client.socket.pause();
  const count = await blocked(reply);
  client.socket.end();
  await until("the server has heard of it", () => halves() === 1);
  reply?.write(Buffer.from("late"));
  client.socket.resume();
  const { text } = await client.ended();
  assert.equal(textIn(text), count * short.length);
});
