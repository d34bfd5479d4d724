// pull, models, rm and gc as people use them: a running gateway is asked, progress is shown, exit codes are what scripts expect.
import assert from "node:assert/strict";
import { readdir, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { commandHere, type RunningCommand, startCommand } from "../support/command.ts";
import { cacheTalker, type GatewayFolders, makeFolders } from "../support/folders.ts";
import { type LoopbackHub, startLoopbackHub } from "../support/loopback-hub.ts";
import { modelBytes, talkingModel } from "../support/models.ts";
import { until } from "../support/scratch.ts";

const model = "acme/new-GGUF:Q8_0";
const key = "a-license-key-of-the-commands-0123456789";

interface Commands {
  readonly folders: GatewayFolders;
  readonly hub: LoopbackHub;
  readonly serve: RunningCommand;
  run(...args: readonly string[]): ReturnType<typeof commandHere>;
  start(...args: readonly string[]): Promise<RunningCommand>;
  status(): Promise<{ readonly running: readonly { readonly progress: Record<string, unknown> | null }[] }>;
  document(): Promise<{ readonly models?: readonly unknown[] }>;
}

async function commands(t: TestContext, models: readonly string[] = []): Promise<Commands> {
  const hub = await startLoopbackHub(t);
  hub.addRepo("acme/new-GGUF", { files: { "new-Q8_0.gguf": modelBytes(talkingModel("new")) } });
  const folders = await makeFolders(t);
  await cacheTalker(folders, "acme/alpha");
  await folders.writeConfig(`version: 1\nmodels: ${JSON.stringify(models)}\n`);
  const extra = { HF_ENDPOINT: hub.endpoint, GATEWAY_LICENSE_KEY: key };
  const serve = await startCommand(t, folders, ["serve"], extra);
  const [, port = ""] = await serve.output(/http:\/\/127\.0\.0\.1:(\d+)/);
  const ask = async (path: string): Promise<unknown> =>
    (await fetch(`http://127.0.0.1:${port}${path}`, { headers: { authorization: `Bearer ${key}` } })).json();
  return {
    folders,
    hub,
    serve,
    run: (...args) => commandHere(folders, [...args, "--port", port], extra),
    start: (...args) => startCommand(t, folders, [...args, "--port", port], extra),
    status: () => ask("/status") as ReturnType<Commands["status"]>,
    document: async () => ((await ask("/api/desired")) as { document: { models?: readonly unknown[] } }).document,
  };
}

test("pull shows bytes, rate and time left, and is done when the router lists the model; rm deletes it after a yes", async (t) => {
  const { hub, folders, run, start, status, document } = await commands(t);
  const size = modelBytes(talkingModel("new")).length;
  hub.pace("new-Q8_0.gguf", size / 2);
  const pulling = await start("pull", model);
  const rates: unknown[] = [];
  await until("the rate is told", async () => {
    const progress = (await status()).running[0]?.progress;
    if (progress && Number(progress["bytesPerSecond"]) > 0)
      rates.push(progress["bytesPerSecond"], progress["secondsLeft"]);
    return rates.length > 0;
  });
  assert.ok(rates.every((rate) => typeof rate === "number" && rate >= 0));
  const { code, stdout, stderr } = await pulling.exited;
  assert.deepEqual([code, stdout], [0, `${model} is present.\n`]);
  const lines = stderr.split("\n").filter((line) => line.startsWith(`${model}: `));
  assert.ok(
    lines.some((line) => /: \d+% [\d.]+ kB of [\d.]+ kB [\d.]+ kB\/s \d+s left$/.test(line)),
    stderr,
  );
  assert.match(stderr, /100%/);
  assert.ok(!stderr.includes("\u001b"), "no bar where there is no terminal");
  assert.deepEqual((await document()).models, [model]);

  const table = await run("models");
  assert.equal(table.code, 0, table.stderr);
  assert.match(table.stdout, /^acme\/new-GGUF:Q8_0 +[\d.]+ kB +(-|\d+ MiB) +never +in the document, of this gateway$/m);
  assert.match(
    table.stdout,
    /^acme\/alpha:Q8_0 +[\d.]+ kB +(-|\d+ MiB) +never +not in the document, of another program$/m,
  );
  assert.match(table.stdout, /in the model cache, .* free\.$/m);
  const json = JSON.parse((await run("models", "--json")).stdout) as { models: { id: string; bytes: number }[] };
  assert.equal(json.models.find(({ id }) => id === model)?.bytes, size);

  const nothing = await run("rm", "nope");
  assert.equal(nothing.code, 1);
  assert.match(nothing.stderr, /^model-gateway: model 'nope' not found/);
  const unasked = await run("rm", model);
  assert.equal(unasked.code, 2);
  assert.match(unasked.stderr, /No terminal to confirm on: .*--yes/);
  const removed = await (await start("rm", model, "--yes")).exited;
  assert.deepEqual([removed.code, removed.stderr], [0, ""]);
  assert.match(removed.stdout, /^Removed acme\/new-GGUF:Q8_0: [\d.]+ kB freed\.\n$/);
  assert.deepEqual(await readdir(folders.cacheDir), ["models--acme--alpha"]);
});

test("a hub that is away is said with what is the matter, and when it is asked again; rm gives the pull up", async (t) => {
  const { hub, serve, run, start, document } = await commands(t);
  await hub.close();
  const why = `cannot reach the hub \\(${new URL(hub.endpoint).host} refuses connections\\)\\. Will retry in \\d+ s`;
  const pulling = await start("pull", model);
  await pulling.said(new RegExp(`^${model}: ${why}$`, "m"));
  await serve.said(new RegExp(`"error":"${why}"`));
  pulling.process.kill("SIGINT");
  assert.equal((await pulling.exited).code, 130);
  // It is in the document alone, which is enough to be asked about.
  assert.equal((await run("rm", model)).code, 2);
  assert.equal((await run("rm", model, "--yes")).code, 0);
  assert.deepEqual((await document()).models, []);
});

test("Ctrl+C leaves: the pull goes on, and rm gives it up", async (t) => {
  const { hub, folders, run, start, document, status } = await commands(t);
  const hold = hub.throttle("new-Q8_0.gguf", 100_000);
  const pulling = await start("pull", model);
  await hold.reached;
  pulling.process.kill("SIGINT");
  const { code, stderr } = await pulling.exited;
  assert.equal(code, 130);
  assert.match(stderr, /Left\. The pull continues; `node \S+ rm acme\/new-GGUF:Q8_0 [^`]*--port \d+` cancels it\./);
  assert.deepEqual((await document()).models, [model]);
  const table = await run("status");
  assert.match(table.stdout, /^\* pull acme\/new-GGUF:Q8_0 \(\d+s\): [\d.]+ k?B of [\d.]+ kB/m);
  assert.equal((await run("rm", model, "--yes")).code, 0);
  await until("given up", async () => (await document()).models?.length === 0 && (await status()).running.length === 0);
  assert.deepEqual(await readdir(folders.cacheDir), ["models--acme--alpha"]);
  hold.release();

  const wanted = hub.throttle("new-Q8_0.gguf", 100_000);
  await folders.writeConfig(`version: 1\nmodels: ["${model}"]\n`);
  await wanted.reached;
  const second = await start("pull", model);
  await second.said(/acme/);
  second.process.kill("SIGINT");
  assert.equal((await second.exited).code, 130);
  wanted.release();
  await until("pulled all the same", async () => (await readdir(folders.cacheDir)).includes("models--acme--new-GGUF"));
  await until("at rest", async () => (await status()).running.length === 0);
  assert.deepEqual((await document()).models, [model]);
});

test("models and gc look by themselves where no gateway runs, and not beside one that is elsewhere", async (t) => {
  const folders = await makeFolders(t);
  const alpha = await cacheTalker(folders, "acme/alpha");
  await folders.writeConfig(`version: 1\nmodels: ["${alpha}"]\n`);
  const partial = join(folders.cacheDir, "models--acme--alpha", "blobs", `${"a".repeat(64)}.gw.incomplete`);
  await writeFile(partial, "x".repeat(10_000));
  await utimes(partial, 1_000_000, 1_000_000);
  const run = (...args: readonly string[]) => commandHere(folders, args);
  const table = await run("models");
  assert.equal(table.code, 0, table.stderr);
  assert.match(table.stdout, /^acme\/alpha:Q8_0 +[\d.]+ kB +- +never +in the document, of another program$/m);
  assert.match(table.stdout, /`node \S+ gc [^`]*` would free 10\.0 kB\./);
  const look = await run("gc", "--json");
  const { dryRun, items } = JSON.parse(look.stdout) as { dryRun: boolean; items: readonly { reason: string }[] };
  assert.deepEqual([look.code, dryRun, items.map(({ reason }) => reason)], [2, true, ["AbandonedPartial"]]);
  const refused = await run("gc", "--yes");
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /no gateway runs on the state folder/);
  const nowhere = await commandHere(await makeFolders(t), ["export"]);
  assert.deepEqual([nowhere.code, nowhere.stdout], [1, ""]);
  assert.match(nowhere.stderr, /gateway\.yaml is not there; /);
  // A job whose gateway was away got the plan of its own machine, as if it was that gateway's.
  const away = await run("plan", "--port", "9");
  assert.deepEqual([away.code, away.stdout], [1, ""]);
  assert.match(away.stderr, /no gateway answers on http:\/\/127\.0\.0\.1:9; `.* serve.*` starts one/);
  assert.equal((await readdir(join(partial, ".."))).length, 2);

  const serve = await startCommand(t, folders, ["serve"]);
  await serve.output(/http:\/\/127\.0\.0\.1:(\d+)/);
  const beside = await run("models", "--port", "9");
  assert.equal(beside.code, 1);
  assert.match(beside.stderr, /no gateway answers on \S+:9; that of .* listens on http:/);
});

test("gc tells what would go with exit code 2, and deletes it with --yes; errors are said in words", async (t) => {
  const { folders, run, start, serve } = await commands(t);
  await serve.output(/curl|No model yet/);
  const nothing = await run("gc");
  assert.deepEqual([nothing.code, nothing.stdout], [0, "Nothing to delete.\n"]);
  const blobs = join(folders.cacheDir, "models--acme--alpha", "blobs");
  const partial = join(blobs, `${"a".repeat(64)}.gw.incomplete`);
  await writeFile(partial, "x".repeat(10_000));
  await utimes(partial, 1_000_000, 1_000_000);
  const look = await run("gc");
  assert.equal(look.code, 2);
  assert.match(
    look.stdout,
    /^- models--acme--alpha\/blobs\/a{64}\.gw\.incomplete: .* \(AbandonedPartial, 10\.0 kB\)$/m,
  );
  assert.match(look.stdout, /10\.0 kB would become free\. `node \S+ gc --yes [^`]*` deletes it\./);
  const done = await (await start("gc", "--yes")).exited;
  assert.equal(done.code, 0);
  assert.match(done.stdout, /^Deleted: 10\.0 kB freed\.$/m);
  assert.equal((await readdir(blobs)).length, 1);

  const missing = await (await start("pull", "acme/none-GGUF:Q8_0")).exited;
  assert.equal(missing.code, 1);
  assert.match(missing.stderr, /model-gateway: .*acme\/none-GGUF/);
});
