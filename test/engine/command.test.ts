// The command line as people use it: a fresh machine chats, exit codes are what scripts expect, nothing stays behind.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { access, readdir, readFile, rename } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { findLeftovers } from "../../src/engines/process/leftovers.ts";
import { starterSentence } from "../../src/starter/starter-model.ts";
import { cleanUp } from "../support/clean-up.ts";
import { commandHere, commandLine, runCommand, startCommand } from "../support/command.ts";
import { llamaServer } from "../support/engine.ts";
import { cacheTalker, makeFolders, makeTalkerFolders, talker } from "../support/folders.ts";
import { streamChat } from "../support/gateway.ts";
import { instanceOf, suspend } from "../support/held-answer.ts";
import { answersOf } from "../support/models.ts";
import { isRunning } from "../support/processes.ts";
import { patchWith } from "../support/requests.ts";
import { until } from "../support/scratch.ts";

test("a first start writes the starter and its document, and the curl line that it prints answers", async (t) => {
  const folders = await makeFolders(t);
  const serve = await startCommand(t, folders, ["serve"]);
  const [line = ""] = await serve.output(/^.*"try":.*$/m);
  const { stdout } = await promisify(execFile)("sh", ["-c", (JSON.parse(line) as { try: string }).try]);
  const pieces = [...stdout.matchAll(/^data: (\{.*\})$/gm)].map(
    (match) =>
      (JSON.parse(match[1] ?? "") as { choices: { delta: { content?: string } }[] }).choices[0]?.delta.content ?? "",
  );
  assert.equal(pieces.join(""), starterSentence);
  assert.match(stdout, /data: \[DONE\]/);
  assert.match(
    await readFile(folders.configPath, "utf8"),
    /^# yaml-language-server: .*\n[\s\S]*local\/starter-GGUF:Q8_0/,
  );

  serve.process.kill("SIGTERM");
  const ended = await serve.exited;
  assert.equal(ended.code, 0);
  assert.deepEqual(await findLeftovers(folders.stateDir), []);
  await assert.rejects(access(join(folders.stateDir, "gateway.lock")));
  // Nobody sits at a terminal there: every line is for a program.
  const said = linesIn(ended.stdout);
  assert.deepEqual(
    said.map(({ msg }) => String(msg).split(" ")[0]),
    ["Model", "Ready.", "Stopping:"],
  );
  assert.match(String(said[0]?.["url"]), /^http:\/\/127\.0\.0\.1:\d+$/);
  assert.ok(linesIn(ended.stderr).some(({ msg }) => msg === "wrote a first document, with a starter model"));
});

test("on a terminal the start is a line per stage, then the addresses and what to try; Ctrl+C stops it", async (t) => {
  const folders = await makeFolders(t);
  const [node, ...words] = commandLine(["serve", "--port", "0", "--state", folders.stateDir]);
  // Without `exec` the shell between would end by Ctrl+C too, with a code of its own.
  const serve = spawn("script", ["-qefc", `exec ${[node, ...words].join(" ")}`, "/dev/null"], {
    stdio: ["pipe", "pipe", "inherit"],
    env: {
      PATH: process.env["PATH"],
      HOME: folders.root,
      TERM: "dumb",
      HF_HUB_CACHE: folders.cacheDir,
      HF_ENDPOINT: "http://127.0.0.1:9",
      LLAMA_SERVER: await llamaServer(),
    },
  });
  cleanUp(t, async () => void (serve.exitCode === null && serve.kill("SIGKILL")));
  const closed = once(serve, "close");
  let seen = "";
  serve.stdout.on("data", (bytes: Buffer) => (seen += bytes.toString()));
  await until("ready", () => /Ready\. Try it:\s+curl -N http/.test(seen));
  serve.stdin.write("\u0003");
  assert.deepEqual(await closed, [0, null], seen);
  // Of what was written over itself the last.
  const lines = seen.split("\r\n").map((line) => line.split("\r\u001b[K").at(-1) ?? "");
  const url = /Address {3}(\S+)/.exec(seen)?.[1] ?? "";
  assert.match(lines[0] ?? "", /^Model Gateway \d/);
  assert.equal(lines[1], `✓ listens on ${url}`);
  assert.ok(lines.includes(`  Page      ${url}/ui`), seen);
  const stages = lines.filter((line) => line.startsWith("✓")).map((line) => line.replace(/ {2}[\d.]+ m?s$/, ""));
  assert.deepEqual(
    stages
      .slice(1)
      .filter((line) => /^✓ (?:write|import|start) /.test(line))
      .toSorted(),
    ["✓ import local/starter-GGUF:Q8_0 from ./starter-Q8_0.gguf", "✓ start the router", "✓ write router.preset.ini"],
  );
  assert.match(seen, /! Stopping: /);
  assert.ok(!seen.includes('"level"'), "no JSON");
});

function linesIn(output: string): Record<string, unknown>[] {
  const lines = output.split("\n");
  assert.equal(lines.pop(), "");
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

test("a model cache that goes away and comes back is told in the log, once each", async (t) => {
  const folders = await makeTalkerFolders(t);
  const serve = await startCommand(t, folders, ["serve"]);
  await serve.output(/Ready/);
  const away = `${folders.cacheDir}.away`;
  await rename(folders.cacheDir, away);
  await serve.said(/the model cache is away/);
  await rename(away, folders.cacheDir);
  await serve.said(/the model cache is back/);
  serve.process.kill("SIGTERM");
  const { stderr } = await serve.exited;
  assert.deepEqual(stderr.match(/the model cache is \w+/g), ["the model cache is away", "the model cache is back"]);
});

test("plan: 2 with changes, 0 without, 1 for an error; before a start and beside a running gateway", async (t) => {
  const folders = await makeFolders(t);
  const model = await cacheTalker(folders, "acme/alpha");
  await folders.writeConfig(`version: 1\nmodels: [{ id: "${model}", ctxSize: 1024 }]\n`);
  const before = await runCommand(t, folders, ["plan"]);
  assert.deepEqual([before.code, before.stderr], [2, ""]);
  assert.match(before.stdout, /preset\.write/);
  await assert.rejects(access(join(folders.stateDir, "router.preset.ini")), "a plan changes nothing");
  const missing = await commandHere(folders, ["plan", "--config", join(folders.stateDir, "none.yaml"), "--json"]);
  assert.deepEqual([missing.code, missing.stdout], [1, ""]);
  assert.match((JSON.parse(missing.stderr) as { msg: string }).msg, /none\.yaml is not there; .* writes a first one/);

  await folders.writeConfig(`version: 1\nmodels: []\nspeech: { transcription: { model: base.en } }\n`);
  const without = await commandHere(folders, ["plan"], { WHISPER_SERVER: "/nowhere" });
  assert.equal(without.code, 2);
  assert.match(without.stdout, /^! speech\/transcription: whisper-server is set to \/nowhere/m);
  assert.match(without.stdout, /, 1 that cannot be done\.$/m);
  await folders.writeConfig(`version: 1\nmodels: [{ id: "${model}", ctxSize: 1024 }]\n`);

  const serve = await startCommand(t, folders, ["serve"]);
  await serve.output(/curl/);
  const [, port = ""] = await serve.output(/http:\/\/127\.0\.0\.1:(\d+)/);
  const during = await runCommand(t, folders, ["plan", "--port", port]);
  assert.deepEqual([during.code, during.stdout], [0, "Nothing to do.\n"]);
  const json = await commandHere(folders, ["plan", "--json", "--port", port]);
  assert.equal((JSON.parse(json.stdout) as { converged: boolean }).converged, true);

  // Flags that mean another gateway than the one that answers are no way to ask it.
  const other = await makeFolders(t);
  const otherModel = await cacheTalker(other, "acme/beta");
  await other.writeConfig(`version: 1\nmodels: [{ id: "${otherModel}", ctxSize: 512 }]\n`);
  const beside = { HF_HUB_CACHE: other.cacheDir };
  const plan = (...args: readonly string[]) => commandHere(folders, ["plan", ...args], beside);
  const [config, own] = await Promise.all([
    plan("--config", other.configPath),
    plan("--state", folders.stateDir, "--config", folders.configPath),
  ]);
  assert.equal(config.code, 1);
  assert.ok(config.stderr.includes(`has the document ${folders.configPath}, not ${other.configPath}`), config.stderr);
  assert.deepEqual([own.code, own.stdout], [0, "Nothing to do.\n"]);

  await folders.writeConfig("version: 2\n");
  for (const command of ["plan", "status"]) {
    const wrong = await commandHere(folders, [command, "--port", port]);
    assert.equal(wrong.code, 1, wrong.stdout);
    assert.match(
      wrong.stderr,
      /^model-gateway: \S+gateway\.yaml:1:10: version: must be 1; the last good document stays$/m,
    );
  }
  await folders.writeConfig(`version: 1\nsuspend: true\nmodels: [{ id: "${model}", ctxSize: 512 }]\n`);
  const held = await commandHere(folders, ["plan", "--port", port]);
  assert.equal(held.code, 2);
  assert.match(held.stdout, /^= preset\.write: .* \(held: suspend is set in the document\)$/m);

  const second = await runCommand(t, folders, ["serve"]);
  assert.equal(second.code, 1);
  assert.match(
    second.stderr,
    new RegExp(`another gateway \\(process ${serve.process.pid}, http://127.0.0.1:${port}\\)`),
  );
  serve.process.kill("SIGTERM");
  await serve.exited;
  await folders.writeConfig("version: 2\n");
  const broken = await commandHere(folders, ["plan"]);
  assert.equal(broken.code, 1);
  assert.match(broken.stderr, /gateway\.yaml:1:10/);
});

test("validate asks the engine that is here, and takes standard input beside a file", async (t) => {
  const folders = await makeFolders(t);
  // The options of the engine that is here, which has fewer than a document may set with --preset-allow.
  await folders.writeConfig(
    "version: 1\nmodels:\n  - id: acme/a:Q8_0\n    preset: { top-k: 4, top-kk: 4, flash-attn: on }\n",
  );
  const options = await commandHere(folders, ["validate", folders.configPath, "--preset-allow", "top-kk"]);
  assert.equal(options.code, 1);
  assert.match(
    options.stderr,
    /^\S+gateway\.yaml:4:25: models\[0\]\.preset\.top-kk: the engine \S+ has no option top-kk \(did you mean top-k\?\)\n$/,
  );
  const input = "version: 1\nmodels: [acme/a:Q8_0]\n";
  const both = await runCommand(t, folders, ["validate", "-", folders.configPath], {}, input);
  assert.deepEqual([both.code, both.stdout], [1, "<stdin> is valid\n"]);
});

test("without a command there is help, and nothing is started or written", async (t) => {
  const folders = await makeFolders(t);
  const bare = await runCommand(t, folders, []);
  assert.deepEqual([bare.code, bare.stderr], [0, ""]);
  assert.match(bare.stdout, /^Usage: model-gateway COMMAND/);
  const one = await commandHere(folders, ["help", "key", "create"]);
  assert.match(one.stdout, /^Usage: model-gateway key create NAME \[--scope chat\] .*\s+\[--json\]\n/);
  assert.deepEqual(await commandHere(folders, ["key", "create", "--help"]), one);
  const none = await commandHere(folders, ["help", "plans"]);
  assert.equal(none.code, 1);
  assert.match(none.stderr, /^model-gateway: there is no command plans; /);
  assert.deepEqual(await readdir(folders.stateDir), []);
});

test("a port that is taken and flags that are none end with a clear word and exit code 1", async (t) => {
  const folders = await makeFolders(t);
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  cleanUp(t, () => other.close());
  const { port } = other.address() as AddressInfo;
  const taken = await runCommand(t, folders, ["serve", "--port", String(port)]);
  assert.equal(taken.code, 1);
  assert.match(taken.stderr, new RegExp(`port ${port} is taken .*\`node \\S+ serve --port N --state \\S+\``));
  const npm = { npm_lifecycle_event: "start" };
  const byNpm = await runCommand(t, folders, ["serve", "--port", String(port)], npm);
  assert.match(byNpm.stderr, /`npm start -- --port N --state \S+`/);
  // As npm hands on `npm start --port 9000`.
  const kept = await runCommand(t, folders, ["serve", "9000"], { ...npm, npm_config_port: "true" });
  assert.deepEqual([kept.code, /serve does not take \\"9000\\"/.test(kept.stderr)], [1, true]);
  assert.deepEqual(await readdir(folders.stateDir), [], "nothing is written before the port is known to be free");
  for (const args of [
    ["serve", "--prot", "1"],
    ["serve", "--port", "many"],
    ["serve", "--host", "0.0.0.0"],
  ]) {
    const { code, stderr } = await runCommand(t, folders, args);
    assert.deepEqual([code, linesIn(stderr)[0]?.["code"]], [1, "invalid_request"], args.join(" "));
  }
});

test("after kill -9 of the gateway the next start ends what is left, and only that, and carries on", async (t) => {
  const folders = await makeFolders(t);
  const model = await cacheTalker(folders, "acme/alpha");
  await folders.writeConfig(`version: 1\nmodels: [{ id: "${model}" }]\n`);
  const stranger = await makeFolders(t);
  await stranger.writeConfig("version: 1\n");
  const neighbour = await startCommand(t, stranger, ["serve"], { HF_HUB_CACHE: folders.cacheDir });
  const [, neighbourUrl = ""] = await neighbour.output(/listens on (\S+);/);
  await neighbour.output(/curl/);
  await streamChat(neighbourUrl, model, "hi");

  const first = await startCommand(t, folders, ["serve"]);
  const [, url = ""] = await first.output(/listens on (\S+);/);
  await first.output(/curl/);
  await fetch(`${url}/api/desired`, patchWith({ models: { [model]: { ctxSize: 1024 } } }));
  await streamChat(url, model, "hi");
  first.process.kill("SIGKILL");
  await first.exited;
  const left = await findLeftovers(folders.stateDir);
  assert.ok(left.length >= 1, "the router lives on");
  const neighbours = await findLeftovers(stranger.stateDir);
  assert.equal(neighbours.length, 2);

  const second = await startCommand(t, folders, ["serve"]);
  const [, url2 = ""] = await second.output(/listens on (\S+);/);
  await second.output(/curl/);
  for (const pid of left) assert.equal(await isRunning(pid), false, `process ${pid} of the dead gateway`);
  assert.deepEqual(await findLeftovers(stranger.stateDir), neighbours);
  const { data } = (await (await fetch(`${url2}/beta/v1/models`)).json()) as { data: { context_length: number }[] };
  assert.equal(data[0]?.context_length, 1024, "what the API had set is still desired");
});

test("TERM lets answers in flight end; what is still running after the grace ends in an error frame", async (t) => {
  const folders = await makeTalkerFolders(t);
  const serve = await startCommand(t, folders, ["serve", "--stop-grace", "6"]);
  const [, url = ""] = await serve.output(/listens on (\S+);/);
  await serve.output(/curl/);
  let pieces = 0;
  const asked = (): void => {
    if (++pieces === 10) serve.process.kill("SIGTERM");
  };
  const endlessly = streamChat(url, talker, "forever", asked);
  const whole = await streamChat(url, talker, "hi", asked);
  const release = suspend(t, await instanceOf(folders, talker));
  const endless = await endlessly;
  release();
  assert.deepEqual(whole, { text: answersOf("talker").hello, done: true, error: null });
  assert.deepEqual([endless.done, endless.error], [false, "the gateway is stopping"]);
  assert.equal((await serve.exited).code, 0);
  assert.deepEqual(await findLeftovers(folders.stateDir), []);
});

test("a child gets neither the hub's token nor what else is secret, and finds none in the gateway's environment", async (t) => {
  const folders = await makeFolders(t);
  const model = await cacheTalker(folders, "acme/alpha");
  await folders.writeConfig("version: 1\n");
  const secrets = {
    HF_TOKEN: "hf_verysecretverysecret",
    GATEWAY_LICENSE_KEY: "license-secret",
    AWS_SECRET_ACCESS_KEY: "aws-secret",
    HTTPS_PROXY: "http://user:proxy-secret@127.0.0.1:9",
    LLAMA_ARG_CTX_SIZE: "98765432101",
  };
  const serve = await startCommand(t, folders, ["serve", "--log-level", "trace"], secrets);
  const [, url = ""] = await serve.output(/listens on (\S+);/);
  await serve.output(/curl/);
  await streamChat(`${url}/k/${secrets.GATEWAY_LICENSE_KEY}`, model, "hi");
  const pids = await findLeftovers(folders.stateDir);
  assert.equal(pids.length, 2);
  for (const pid of pids) {
    const environment = await readFile(`/proc/${pid}/environ`, "utf8");
    const commandLine = await readFile(`/proc/${pid}/cmdline`, "utf8");
    for (const secret of Object.values(secrets))
      assert.ok(!environment.includes(secret) && !commandLine.includes(secret), secret);
    assert.doesNotMatch(commandLine, /api-key|ctx-size/);
  }
  // A child may read the gateway's own, as any process of the same user.
  const own = await readFile(`/proc/${serve.process.pid}/environ`, "utf8");
  assert.match(own, /GATEWAY_STATE=/);
  for (const secret of Object.values(secrets).slice(0, 4)) assert.ok(!own.includes(secret), secret);
  serve.process.kill("SIGTERM");
  const { stderr, stdout } = await serve.exited;
  for (const secret of Object.values(secrets).slice(0, 4))
    assert.ok(!stderr.includes(secret) && !stdout.includes(secret), secret);
});
