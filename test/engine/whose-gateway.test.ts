// Commands ask the gateway of their state folder, wherever it listens, and change no other one unless they are forced to.
import assert from "node:assert/strict";
import { access } from "node:fs/promises";
import { type TestContext, test } from "node:test";
import { type CommandResult, commandHere, type RunningCommand, runCommand, startCommand } from "../support/command.ts";
import { cacheModel, type GatewayFolders, makeFolders } from "../support/folders.ts";
import { modelBytes, talkingModel } from "../support/models.ts";

const model = "acme/alpha:Q8_0";

interface Machine extends GatewayFolders {
  readonly serve: RunningCommand;
  readonly port: string;
  readonly file: string;
  run(...args: readonly string[]): Promise<CommandResult>;
}

/** A gateway with the model in a cache of its own. */
async function startMachine(t: TestContext): Promise<Machine> {
  const folders = await makeFolders(t);
  const file = await cacheModel(folders, "acme/alpha", "alpha-Q8_0.gguf", modelBytes(talkingModel("alpha")));
  await folders.writeConfig("version: 1\n");
  const serve = await startCommand(t, folders, ["serve"]);
  const [, port = ""] = await serve.output(/listens on http:\/\/127\.0\.0\.1:(\d+)/);
  await serve.output(/Ready/);
  return { ...folders, serve, port, file, run: (...args) => commandHere(folders, args) };
}

test("a command finds the gateway of its state folder, and changes another one only when it is forced to", async (t) => {
  const own = await startMachine(t);
  const other = await startMachine(t);

  await t.test("it finds its own without being told where", async () => {
    const { code, stdout, stderr } = await own.run("status");
    assert.deepEqual([code, stderr], [0, ""]);
    assert.match(stdout, /RouterReady +True/);
  });

  await t.test("it reads from another one by hand, and says whose that is", async () => {
    for (const [port, isOwn] of [
      [own.port, true],
      [other.port, false],
    ] as const) {
      const { code, stdout, stderr } = await own.run("models", "--port", port);
      assert.equal(code, 0);
      assert.match(stdout, /^acme\/alpha:Q8_0 /m);
      const note = `Note: the gateway on http://127.0.0.1:${port} is not the one of the state folder ${own.stateDir}; its document is ${other.configPath}\n`;
      assert.equal(stderr, isOwn ? "" : note);
    }
  });

  await t.test("it changes nothing there", async () => {
    for (const args of [
      ["rm", model, "--yes"],
      ["gc", "--yes"],
      ["pull", "acme/beta:Q8_0"],
    ]) {
      const { code, stdout, stderr } = await own.run(...args, "--port", other.port);
      assert.deepEqual([code, stdout], [1, ""], args.join(" "));
      assert.match(stderr, /is not the one of the state folder .*: use --force to change it$/m);
    }
    await access(other.file);
  });

  await t.test("without a gateway of its own it asks none, and changes none", async () => {
    own.serve.process.kill("SIGTERM");
    await own.serve.exited;
    for (const args of [["rm", model, "--yes"], ["status"], ["pull", model]]) {
      const { code, stderr } = await own.run(...args);
      assert.deepEqual([code, /no gateway runs on the state folder/.test(stderr)], [1, true], args.join(" "));
    }
    assert.equal((await own.run("rm", model, "--yes", "--port", other.port)).code, 1);
    await Promise.all([own.file, other.file].map((file) => access(file)));
    assert.equal((await own.run("models")).code, 0, "it looks by itself");
  });

  await t.test("it changes another one when it is forced to", async () => {
    const forced = ["rm", model, "--yes", "--force", "--port", other.port];
    const { code, stdout, stderr } = await runCommand(t, own, forced);
    assert.deepEqual(
      [code, stdout.startsWith(`Removed ${model}`), stderr.startsWith("Note: ")],
      [0, true, true],
      stderr,
    );
    await assert.rejects(access(other.file));
    await access(own.file);
  });
});
