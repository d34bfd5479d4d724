// The package as npm installs it: it starts in an empty folder as a service of systemd would, names its commands as they can be typed,
// and answers a chat.
import assert from "node:assert/strict";
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { findOnPath } from "../../src/engines/install/locate.ts";
import { packageRoot } from "../../src/settings/settings.ts";
import { starterId, starterSentence } from "../../src/starter/starter-model.ts";
import { cleanUp } from "../support/clean-up.ts";
import { llamaServer } from "../support/engine.ts";
import { chatWith } from "../support/requests.ts";
import { scratchFolder, until } from "../support/scratch.ts";

const run = promisify(execFile);

/** Prints what arrives at a datagram socket, as systemd has one. */
const receiver = `use IO::Socket::UNIX; $| = 1;
my $socket = IO::Socket::UNIX->new(Type => SOCK_DGRAM, Local => $ARGV[0]) or die "no socket: $!";
print "open\\n";
while (defined $socket->recv(my $text, 4096)) { print "$text\\n" }`;

interface Watched {
  readonly child: ChildProcess;
  readonly output: () => string;
}

function start(
  t: TestContext,
  [program, ...args]: readonly [string, ...string[]],
  options: { env: object; cwd: string },
): Watched {
  const child = spawn(program, args, { ...options, env: { ...options.env }, stdio: ["ignore", "pipe", "pipe"] });
  const exited = once(child, "exit");
  cleanUp(t, async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill("SIGTERM");
    await exited;
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (text: Buffer) => (output += text.toString()));
  return { child, output: () => output };
}

test("npm pack, npm install, model-gateway serve", async (t) => {
  const root = await scratchFolder(t);
  const [prefix, empty] = [join(root, "prefix"), join(root, "empty")];
  await mkdir(empty);
  await run("npm", ["pack", "--silent", "--pack-destination", root], { cwd: packageRoot });
  const [packed = ""] = (await readdir(root)).filter((name) => name.endsWith(".tgz"));
  const quiet = ["--prefer-offline", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=warn"];
  const install = ["install", "--global", "--prefix", prefix, ...quiet, join(root, packed)];
  // The overrides of package.json do not hold here: a dependency of a dependency wanted a newer Node.
  assert.equal((await run("npm", install, { cwd: root })).stderr, "");

  const PATH = [join(prefix, "bin"), dirname(process.execPath), process.env["PATH"]].join(delimiter);
  const env = {
    PATH,
    HOME: root,
    LLAMA_SERVER: await llamaServer(),
    GATEWAY_PORT: "0",
    HF_ENDPOINT: "http://127.0.0.1:9",
  };
  const options = { env, cwd: empty };
  const missing = ["systemd-notify", "perl"].map(async (tool) => ((await findOnPath(tool, PATH)) === null ? tool : ""));
  const socket = join(root, "notify");
  const isService = (await Promise.all(missing)).join("") === "";
  if (!isService) t.diagnostic("no systemd-notify or no perl here: messages to the service manager were not checked");
  const manager = isService ? start(t, ["perl", "-e", receiver, socket], options) : null;
  if (manager) await until("a socket", () => manager.output().includes("open\n"));

  const serviceEnv = { ...env, ...(manager && { NOTIFY_SOCKET: socket }) };
  const serve = start(t, ["model-gateway", "serve"], { ...options, env: serviceEnv });
  const ended = once(serve.child, "exit");
  await until(`"Ready." in ${serve.output()}`, () => /"msg":"Ready\. Try it\."/.test(serve.output()));
  const [, url = ""] = /"url":"([^"]+)"/.exec(serve.output()) ?? [];
  const answer = await fetch(`${url}/v1/chat/completions`, chatWith(starterId, "hi"));
  const { choices } = (await answer.json()) as { choices: [{ message: { content: string } }] };
  assert.equal(choices[0].message.content, starterSentence);
  assert.equal((await fetch(`${url}/ui`)).status, 200);
  assert.deepEqual(await readdir(empty), []);

  await t.test("its commands are named as they can be typed", async () => {
    const status = await run("model-gateway", ["status"], options);
    assert.match(status.stdout, /ready/i);
    const { stderr } = await run(
      "model-gateway",
      ["voice", "search", "--json", "nothing", "--port", "9"],
      options,
    ).catch((error: unknown) => error as { stderr: string });
    assert.match(
      stderr,
      /`model-gateway serve --port 9` starts one|`model-gateway serve` starts one|that of .* listens on/,
    );
    assert.doesNotMatch(serve.output(), /npm start|cli\.js/);
  });

  serve.child.kill("SIGTERM");
  assert.deepEqual(await ended, [0, null]);
  if (manager) {
    await until(`"STOPPING" in ${manager.output()}`, () => manager.output().includes("STOPPING=1"));
    const messages = manager.output();
    assert.match(messages, new RegExp(`READY=1\\nSTATUS=listens on ${url}`));
    assert.match(messages, new RegExp(`STATUS=ready on ${url}`));
    assert.ok(messages.indexOf("READY=1") < messages.indexOf("STOPPING=1"), messages);
  }
});
