// A server whose port another program takes between its choice and its use.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { type TestContext, test } from "node:test";
import { type ServerProcess, startServer } from "../../../../src/engines/process/server-process.ts";
import { cleanUp } from "../../../support/clean-up.ts";
import { patientProcess } from "../../../support/patience.ts";
import { refusal, scratchFolder } from "../../../support/scratch.ts";

/** Says its own name to whoever asks, and ends where its port is taken. */
const program = `
  const { createServer } = require("node:http");
  createServer((_, response) => response.end("ours")).listen(Number(process.argv[1]), "127.0.0.1");`;

/** Starts it; another program has just taken each of the first ports that are chosen. */
async function startBeside(
  t: TestContext,
  takenPorts: number,
): Promise<{ readonly start: Promise<ServerProcess>; readonly chosen: number[] }> {
  const workingDir = await scratchFolder(t);
  const chosen: number[] = [];
  const start = startServer(
    "the engine",
    {
      path: process.execPath,
      workingDir,
      args: (port) => {
        chosen.push(port);
        if (chosen.length <= takenPorts) {
          const stranger = createServer((_, response) => response.end("another")).listen(port, "127.0.0.1");
          cleanUp(t, () => stranger.close());
          cleanUp(t, () => stranger.closeAllConnections());
        }
        return ["-e", program, String(port)];
      },
      isReady: async (origin, signal) => (await (await fetch(origin, { signal })).text()) === "ours",
    },
    { stateDir: workingDir, environment: {}, ...patientProcess, warn: () => undefined },
    new AbortController().signal,
  );
  cleanUp(t, async () => (await start.catch(() => null))?.stop());
  return { start, chosen };
}

test("a server that finds its port taken is started on another one", async (t) => {
  const { start, chosen } = await startBeside(t, 1);
  const { origin } = await start;
  assert.equal(chosen.length, 2);
  assert.notEqual(chosen[0], chosen[1]);
  assert.equal(origin, `http://127.0.0.1:${chosen[1]}`);
});

test("a server that finds two ports taken says so", async (t) => {
  const { start, chosen } = await startBeside(t, 2);
  const error = await refusal(start);
  assert.equal(error.code, "engine_failed");
  assert.match(error.message, /ended while starting/);
  assert.equal(chosen.length, 2);
});
