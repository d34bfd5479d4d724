// Listeners who take their time: what is made for them waits on the disk, and whoever makes it is free.
import assert from "node:assert/strict";
import { readdir, readlink } from "node:fs/promises";
import { type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import Fastify from "fastify";
import { GatewayError } from "../../src/core/errors.ts";
import { type SpeakDeps, speak } from "../../src/http/speech/speak.ts";
import { createSpool } from "../../src/http/speech/spool.ts";
import { parseWav } from "../../src/speech/wav.ts";
import { cleanUp } from "../support/clean-up.ts";
import { cannotMount, mountDisk } from "../support/mounts.ts";
import { scratchFolder, until } from "../support/scratch.ts";

/** More than the system holds for a connection, both ends of it together. */
const pieces = 40;
const samplesOfPiece = 500_000;

const piece = { sampleRate: 16_000, channels: 1, samples: new Int16Array(samplesOfPiece).fill(1) };

type Speaker = SpeakDeps["engines"]["synthesis"];

interface Server {
  readonly spoolDir: string;
  /** Answers that still need whoever speaks. */
  users(): number;
  /** To so many pieces; resolves with its beginning, nothing more is read. */
  listen(length?: number): Promise<IncomingMessage>;
}

interface ServerOptions extends Partial<SpeakDeps> {
  readonly spoolDir?: string;
  /** Of what waits on the disk, in bytes. */
  readonly limitBytes?: number;
  readonly freeBytes?: number;
}

async function startServer(t: TestContext, options: ServerOptions = {}): Promise<Server> {
  const spoolDir = options.spoolDir ?? (await scratchFolder(t));
  const spool = createSpool({
    folder: spoolDir,
    limitBytes: options.limitBytes ?? 1e9,
    freeBytes: async () => options.freeBytes,
  });
  let users = 0;
  const use: SpeakDeps["use"] = {
    requireOn: () => undefined,
    transcription: () => Promise.reject(new Error("not asked for")),
    voice: async () => {
      users++;
      return {
        speaker: null,
        confirm: () => undefined,
        takeBack: async () => undefined,
        release: () => void users--,
      };
    },
  };
  const synthesis: Speaker = {
    check: () => undefined,
    speak: async () => {
      await new Promise(setImmediate);
      return piece;
    },
  };
  const app = Fastify();
  app.post<{ Params: { length: string } }>("/:length", async (call, reply) => {
    const input = "One sentence. ".repeat(Number(call.params.length));
    await speak({ use, engines: { synthesis }, ...options, spool }, { input, voice: "x" }, call, reply);
    return reply;
  });
  cleanUp(t, () => app.close());
  await app.listen({ host: "127.0.0.1", port: 0 });
  const { port } = app.server.address() as AddressInfo;
  return {
    spoolDir,
    users: () => users,
    listen: (length = pieces) =>
      new Promise((resolve, reject) => {
        const call = request({ port, path: `/${length}`, method: "POST", agent: false }, resolve);
        cleanUp(t, () => void call.destroy());
        call.on("error", reject).end();
      }),
  };
}

async function rest(answer: IncomingMessage): Promise<Buffer> {
  return Buffer.concat(await answer.toArray());
}

/** Files below a folder that this process has open and that have no name any more. */
async function nameless(folder: string): Promise<string[]> {
  const links = (await readdir("/proc/self/fd")).map((fd) => readlink(join("/proc/self/fd", fd)).catch(() => ""));
  return (await Promise.all(links)).filter((link) => link.startsWith(folder) && link.endsWith(" (deleted)"));
}

test("a listener who reads nothing keeps nobody from the engine, and has all of it later", async (t) => {
  const server = await startServer(t);
  const answer = await server.listen();
  await until("all of it is made", () => server.users() === 0);
  assert.deepEqual(await readdir(server.spoolDir), []);
  if (process.platform === "linux") assert.equal((await nameless(server.spoolDir)).length, 1);
  const { samples, sampleRate } = parseWav(await rest(answer));
  assert.ok(samples.length >= pieces * samplesOfPiece);
  assert.equal(sampleRate, 16_000);
  assert.equal(samples[samples.length - samplesOfPiece / 2], 1);
  if (process.platform === "linux")
    await until("its file is closed", async () => !(await nameless(server.spoolDir)).length);
});

test("one who leaves ends the work, and one who reads nothing for too long is ended", async (t) => {
  let begun = 0;
  const endless: Speaker = {
    check: () => undefined,
    speak: (_piece, signal) =>
      new Promise((resolve, reject) => {
        if (begun++ === 0) resolve(piece);
        else signal.addEventListener("abort", () => reject(new GatewayError("cancelled", "the client left")));
      }),
  };
  const other = await startServer(t, { engines: { synthesis: endless } });
  const leaving = await other.listen();
  await until("it is being made", () => begun === 2);
  assert.equal(other.users(), 1);
  leaving.destroy();
  await until("nobody works for him", () => other.users() === 0);

  const server = await startServer(t, { readStallMs: 400 });
  const deaf = await server.listen();
  await until("all of it is made", () => server.users() === 0);
  if (process.platform === "linux")
    await until("its file is closed", async () => !(await nameless(server.spoolDir)).length);
  await assert.rejects(rest(deaf), { code: "ECONNRESET" });
});

test("a disk that is full breaks off the answer that needs it, and no other", { skip: cannotMount }, async (t) => {
  const spoolDir = await scratchFolder(t);
  mountDisk(t, spoolDir, "4m");
  const server = await startServer(t, { spoolDir });
  const slow = await server.listen();
  await until("nobody works for it", () => server.users() === 0);
  await assert.rejects(rest(slow), { code: "ECONNRESET" });
  const { samples } = parseWav(await rest(await server.listen(3)));
  assert.ok(samples.length >= 3 * samplesOfPiece);
});

test("what waits on the disk is bounded: one answer too many breaks off, and its room comes back", async (t) => {
  const whole = 44 + 2 * pieces * samplesOfPiece;
  const server = await startServer(t, { limitBytes: 1.5 * whole });
  const first = await server.listen();
  await until("the first is made", () => server.users() === 0);
  const second = await server.listen();
  await until("nobody works for the second", () => server.users() === 0);
  await assert.rejects(rest(second), { code: "ECONNRESET" });
  assert.ok(parseWav(await rest(first)).samples.length >= pieces * samplesOfPiece);
  if (process.platform === "linux")
    await until("their files are closed", async () => !(await nameless(server.spoolDir)).length);
  const later = await server.listen();
  await until("it is made", () => server.users() === 0);
  assert.ok(parseWav(await rest(later)).samples.length >= pieces * samplesOfPiece);
});

test("of the disk's last room nothing is taken", async (t) => {
  const server = await startServer(t, { freeBytes: 200 * 2 ** 20 });
  const slow = await server.listen();
  await until("nobody works for it", () => server.users() === 0);
  await assert.rejects(rest(slow), { code: "ECONNRESET" });
  assert.ok(parseWav(await rest(await server.listen(3))).samples.length >= 3 * samplesOfPiece);
});
