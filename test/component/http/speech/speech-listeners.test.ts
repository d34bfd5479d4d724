// Texts on their way to listeners: slow ones, those that leave, and an engine that ends in the middle.
import assert from "node:assert/strict";
import { type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import Fastify from "fastify";
import { GatewayError } from "../../../../src/core/errors.ts";
import { type SpeakDeps, speak } from "../../../../src/http/speech/speak.ts";
import { parseWav } from "../../../../src/speech/wav.ts";
import { cleanUp } from "../../../support/clean-up.ts";
import { until } from "../../../support/scratch.ts";

/** Of 1 MB each: more than the system and we hold for a connection, both ends of it together. */
const pieces = 40;
const samplesOfPiece = 500_000;

const piece = { sampleRate: 16_000, channels: 1, samples: new Int16Array(samplesOfPiece).fill(1) };

interface Server {
  /** Requests that have their turn. */
  users(): number;
  /** Pieces that were asked for. */
  asked(): number;
  /** How often a request waited for the engine to run again. */
  repeats(): number;
  othersWait: boolean;
  /** To so many pieces; resolves with the beginning of the answer, nothing more is read. */
  listen(length?: number): Promise<IncomingMessage>;
}

type Speaker = (nth: number) => Promise<typeof piece>;

async function startServer(t: TestContext, say: Speaker = async () => piece): Promise<Server> {
  let users = 0;
  let asked = 0;
  let repeats = 0;
  const turns: SpeakDeps["turns"] = {
    synthesis: async () => {
      users++;
      let isOver = false;
      return {
        run: () => ({
          speak: async () => {
            await new Promise(setImmediate);
            return say(++asked);
          },
        }),
        again: async () => void repeats++,
        over: () => {
          if (!isOver) users--;
          isOver = true;
        },
      };
    },
  };
  const engines: SpeakDeps["engines"] = { synthesis: { othersWait: () => server.othersWait } };
  const voices: SpeakDeps["voices"] = {
    cachedVoices: async () => ["x"],
    speakersOf: () => Promise.reject(new Error("not asked for")),
    officialVoice: () => Promise.reject(new Error("not asked for")),
  };
  const app = Fastify();
  app.decorateRequest("keyName", () => null);
  app.post<{ Params: { length: string } }>("/:length", async (call, reply) => {
    const input = "One sentence. ".repeat(Number(call.params.length));
    const deps = { turns, engines, voices, listenerStallMs: 100 };
    await speak(deps, { input, voice: "x" }, call, reply);
    return reply;
  });
  cleanUp(t, () => app.close());
  await app.listen({ host: "127.0.0.1", port: 0 });
  const { port } = app.server.address() as AddressInfo;
  const server: Server = {
    users: () => users,
    asked: () => asked,
    repeats: () => repeats,
    othersWait: false,
    listen: (length = pieces) =>
      new Promise((resolve, reject) => {
        const call = request({ port, path: `/${length}`, method: "POST", agent: false }, resolve);
        cleanUp(t, () => void call.destroy());
        call.on("error", reject).end();
      }),
  };
  return server;
}

async function rest(answer: IncomingMessage): Promise<Buffer> {
  return Buffer.concat(await answer.toArray());
}

test("sound is made a little ahead of a listener that reads nothing, who has all of it later", async (t) => {
  const server = await startServer(t);
  const answer = await server.listen();
  let before = -1;
  await until("no more is made", async () => {
    const now = server.asked();
    const stands = now === before;
    before = now;
    await new Promise((resolve) => setTimeout(resolve, 200));
    return stands;
  });
  assert.ok(server.asked() < pieces, `${server.asked()} pieces`);
  assert.equal(server.users(), 1);
  const { samples, sampleRate } = parseWav(await rest(answer));
  assert.ok(samples.length >= pieces * samplesOfPiece);
  assert.deepEqual([sampleRate, samples[samples.length - samplesOfPiece / 2]], [16_000, 1]);
  assert.equal(server.users(), 0);
});

test("a listener that reads nothing is ended once others wait", async (t) => {
  const server = await startServer(t);
  const deaf = await server.listen();
  server.othersWait = true;
  await until("its turn is over", () => server.users() === 0);
  assert.ok(server.asked() < pieces);
  await assert.rejects(rest(deaf), { code: "ECONNRESET" });
  // One that reads is not.
  assert.ok(parseWav(await rest(await server.listen())).samples.length >= pieces * samplesOfPiece);
});

test("a listener that leaves has its turn until the piece that was begun is made", async (t) => {
  let finish = (): void => undefined;
  const begun = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const server = await startServer(t, async (nth) => {
    if (nth > 1) await begun;
    return piece;
  });
  const leaving = await server.listen();
  await until("the next piece is being made", () => server.asked() === 2);
  leaving.destroy();
  await until("it left", () => leaving.closed);
  assert.equal(server.users(), 1);
  finish();
  await until("its turn is over", () => server.users() === 0);
  assert.equal(server.asked(), 2);
});

test("a piece over which the engine ends is asked for again, and the listener has a whole answer", async (t) => {
  const broken = (): GatewayError => new GatewayError("upstream_failed", "it broke off", { cause: new Error("reset") });
  const server = await startServer(t, async (nth) => {
    if (nth === 1 || nth === 5) throw broken();
    return piece;
  });
  const { samples } = parseWav(await rest(await server.listen()));
  assert.ok(samples.length >= pieces * samplesOfPiece);
  assert.deepEqual([server.repeats(), server.asked(), server.users()], [2, pieces + 2, 0]);

  await t.test("but not for ever: a piece that ends it twice breaks the answer off", async (inner) => {
    const cursed = await startServer(inner, async (nth) => {
      if (nth >= 3) throw broken();
      return piece;
    });
    await assert.rejects(rest(await cursed.listen()), { code: "ECONNRESET" });
    assert.deepEqual([cursed.repeats(), cursed.asked(), cursed.users()], [1, 4, 0]);
  });
});

test("what fails before there is any sound is an answer of its own", async (t) => {
  const server = await startServer(t, () => Promise.reject(new GatewayError("upstream_failed", "it made no sound")));
  for (const length of [1, pieces]) {
    const answer = await server.listen(length);
    assert.equal(answer.statusCode, 502);
    assert.match((await rest(answer)).toString(), /it made no sound/);
  }
  assert.equal(server.users(), 0);
});
