// What one client may hold, on a real gateway and with sockets of our own: slow, silent, large, too many, ambiguous.
import assert from "node:assert/strict";
import { test } from "node:test";
import { startTestGateway } from "../support/gateway.ts";
import { type RawClient, rawClient, rawGet, rawPost } from "../support/raw-client.ts";
import { until } from "../support/scratch.ts";

const flags = ["--header-timeout", "1", "--request-timeout", "2", "--idle-timeout", "1", "--header-limit", "4096"];

interface Told {
  readonly error: { readonly code: string; readonly message: string };
}

function bodyOf(text: string): Told {
  return JSON.parse(text.slice(text.indexOf("\r\n\r\n") + 4)) as Told;
}

test("requests that come slowly, or that are none", async (t) => {
  const { url } = await startTestGateway(t, { yaml: "version: 1\n", flags });

  await t.test("headers that never end: 408 after --header-timeout", async () => {
    const client = await rawClient(t, url);
    client.send("GET /livez HTTP/1.1\r\nhost: 127.0.0.1\r\n");
    const trickle = setInterval(() => client.send("x-a: b\r\n"), 50);
    const { text, ms } = await client.ended().finally(() => clearInterval(trickle));
    assert.match(text, /^HTTP\/1\.1 408 /);
    assert.match(bodyOf(text).error.message, /--header-timeout/);
    assert.ok(ms > 900 && ms < 50_000, `${ms} ms`);
  });
  await t.test("a body that never ends: 408 after --request-timeout", async () => {
    const client = await rawClient(t, url);
    const head = rawPost("/v1/chat/completions", {}).replace("content-length: 2", "content-length: 1000");
    client.send(head);
    const trickle = setInterval(() => client.send(" "), 50);
    const { text, ms } = await client.ended().finally(() => clearInterval(trickle));
    assert.match(text, /^HTTP\/1\.1 408 /);
    assert.ok(ms > 1_900 && ms < 50_000, `${ms} ms`);
  });
  await t.test("a connection without a request, at first and after one, is closed", async () => {
    const mute = await rawClient(t, url);
    const kept = await rawClient(t, url);
    kept.send(rawGet("/livez"));
    await kept.until(/"ok"/);
    const { ms } = await kept.ended();
    assert.ok(ms < 50_000, `${ms} ms`);
    assert.match((await mute.ended()).text, /^$|^HTTP\/1\.1 408 /);
  });
  await t.test("headers beyond --header-limit: 431, and no more of them is read", async () => {
    const client = await rawClient(t, url);
    client.send(rawGet("/livez", `x-large: ${"a".repeat(5_000)}\r\n`));
    const { text } = await client.ended();
    assert.match(text, /^HTTP\/1\.1 431 /);
    assert.match(bodyOf(text).error.message, /--header-limit/);
    const address = await rawClient(t, url);
    address.send(rawGet(`/livez?${"a".repeat(5_000)}`));
    assert.match((await address.ended()).text, /^HTTP\/1\.1 431 /);
  });
  await t.test("requests sent at once are answered one after the other", async () => {
    const client = await rawClient(t, url);
    client.send(rawGet("/livez") + rawPost("/api/eject-model", { model: "nobody/nothing" }) + rawGet("/livez"));
    const text = await client.until(/"ok"[^]*"ok"/);
    assert.deepEqual(
      [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status),
      ["200", "404", "200"],
    );
  });
  await t.test("two opinions on a body's length, or a strange one: 400 and the end", async () => {
    const smuggled = rawGet("/status");
    for (const headers of [
      `content-length: ${smuggled.length}\r\ntransfer-encoding: chunked\r\n`,
      `transfer-encoding: chunked\r\ncontent-length: ${smuggled.length}\r\n`,
      "content-length: 5\r\ncontent-length: 6\r\n",
      "content-length: +5\r\n",
      "transfer-encoding: chunked, identity\r\n",
      "transfer-encoding : chunked\r\n",
    ]) {
      const client = await rawClient(t, url);
      client.send(
        `POST /api/eject-model HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n${headers}\r\n0\r\n\r\n${smuggled}`,
      );
      const { text } = await client.ended();
      assert.match(text, /^HTTP\/1\.1 400 /, headers);
      assert.equal([...text.matchAll(/HTTP\/1\.1/g)].length, 1, `${headers} ${text}`);
      assert.equal(bodyOf(text).error.code, "invalid_request");
    }
  });
  await t.test("two opinions on which host is meant: 400", async () => {
    for (const [what, head] of [
      ["two", "GET /livez HTTP/1.1\r\nhost: 127.0.0.1\r\nHost: evil.example\r\n\r\n"],
      ["two alike", "GET /nothing HTTP/1.1\r\nhost: 127.0.0.1\r\nhost: 127.0.0.1\r\n\r\n"],
      ["absolute", "GET http://127.0.0.1/livez HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"],
      ["absolute with a key", "GET http://evil.example/k/SECRET/livez HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"],
      ["no path", "GET livez HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"],
    ] as const) {
      const client = await rawClient(t, url);
      client.send(head);
      const text = await client.until(/\}\}$/);
      assert.match(text, /^HTTP\/1\.1 400 /, what);
      assert.equal(bodyOf(text).error.code, "invalid_request");
      assert.doesNotMatch(text, /SECRET/);
    }
  });
  await t.test("an upgrade that is not offered is a request like any other", async () => {
    const client = await rawClient(t, url);
    client.send(rawGet("/livez", "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-key: AA==\r\n"));
    assert.match(await client.until(/"ok"/), /^HTTP\/1\.1 200 /);
    const tunnel = await rawClient(t, url);
    tunnel.send("CONNECT example.com:443 HTTP/1.1\r\nhost: example.com\r\n\r\n");
    assert.doesNotMatch((await tunnel.ended()).text, /^HTTP\/1\.1 2/);
    const noise = await rawClient(t, url);
    noise.send("\x16\x03\x01\x02\x00 a TLS greeting\r\n\r\n");
    assert.match((await noise.ended()).text, /^HTTP\/1\.1 400 /);
  });
});

test("more connections than --max-connections are told so; supervisors still get their answer", async (t) => {
  const { url } = await startTestGateway(t, {
    yaml: "version: 1\n",
    flags: ["--max-connections", "3", "--event-listeners", "2"],
  });
  const first = await rawClient(t, url);
  first.send(rawPost("/v1/chat/completions", {}).replace("content-length: 2", "content-length: 9"));
  const readers = [first, await rawClient(t, url), await rawClient(t, url)];
  for (const reader of readers.slice(1)) {
    reader.send(rawGet("/api/events"));
    await reader.until(/: from \w+-\d/);
  }
  const shapes = [
    ["/v1/chat/completions", /"code":"busy"/],
    ["/alpha/api/chat", /^\{"error":"all 3 connections are in use/m],
    ["/api/eject-model", /"code":"busy"/],
  ] as const;
  for (const [path, shape] of shapes) {
    const client = await rawClient(t, url);
    client.send(rawPost(path, { model: "a" }));
    const { text } = await client.ended();
    assert.match(text, /^HTTP\/1\.1 503 [^]*\r\nconnection: close\r\n/i);
    assert.match(text, /\r\nretry-after: 5\r\n/);
    assert.match(text, shape);
  }
  for (const path of ["/livez", "/readyz"]) {
    const probe = await rawClient(t, url);
    probe.send(rawGet(path));
    assert.match((await probe.ended()).text, /^HTTP\/1\.1 (?:200|503) [^]*"status":"(?:ok|unready)"/);
  }
  for (const reader of readers) reader.socket.destroy();
  await until("there is room", async () => {
    const client = await rawClient(t, url);
    client.send(rawGet("/v1/models"));
    await client.until(/\r\n\r\n/);
    client.socket.destroy();
    return client.text().startsWith("HTTP/1.1 200");
  });
});

test("idle connections beyond --max-connections give way, the longest idle first", async (t) => {
  const most = 50;
  const { url } = await startTestGateway(t, { yaml: "version: 1\n", flags: ["--max-connections", String(most)] });
  const reader = await rawClient(t, url);
  reader.send(rawGet("/api/events"));
  await reader.until(/: from \w+-\d/);
  const mute: RawClient[] = [];
  for (let at = 0; at < 4 * most; at++) {
    const client = await rawClient(t, url);
    // Half of them have begun to ask.
    if (at % 2 === 0) client.send("GET /livez HTTP/1.1\r\nhost: 127.0.0.1\r\n");
    mute.push(client);
  }
  for (const path of ["/livez", "/v1/models"]) {
    const client = await rawClient(t, url);
    client.send(rawGet(path));
    assert.match(await client.until(/\r\n\r\n/), /^HTTP\/1\.1 200 /);
    client.socket.destroy();
  }
  await until("the others are closed", () => mute.filter(({ socket }) => !socket.closed).length < most);
  // The reader has a place, and the two that asked had one each.
  assert.ok(mute.slice(-(most - 3)).every(({ socket }) => !socket.closed));
  assert.equal(reader.socket.closed, false, "one that is being answered stays");
});
