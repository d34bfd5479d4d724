// The commands of every day against one running gateway: chat, load, set up, search, complete.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { promisify } from "node:util";
import { cleanUp } from "../support/clean-up.ts";
import { commandHere, commandLine, runCommand } from "../support/command.ts";
import { cacheModel, cacheTalker, makeFolders } from "../support/folders.ts";
import { loadedIds, startTestGateway } from "../support/gateway.ts";
import { startLoopbackHub } from "../support/loopback-hub.ts";
import { answersOf, modelBytes, slowModel, talkingModel } from "../support/models.ts";
import { chatWith } from "../support/requests.ts";
import { until } from "../support/scratch.ts";
import { addSpeechRepos } from "../support/speech.ts";

test("verbs", async (t) => {
  const hub = await startLoopbackHub(t);
  hub.addRepo("acme/new-GGUF", {
    files: { "new-Q8_0.gguf": modelBytes(talkingModel("new")), "new-Q4_0.gguf": modelBytes(talkingModel("new")) },
    downloads: 12,
    likes: 3,
  });
  addSpeechRepos(hub);
  const folders = await makeFolders(t);
  const model = await cacheTalker(folders, "acme/alpha", "alpha");
  const slow = "acme/slow:Q8_0";
  await cacheModel(folders, "acme/slow", "slow-Q8_0.gguf", modelBytes(slowModel("slow")));
  const environment = { HF_ENDPOINT: hub.endpoint };
  const yaml = `version: 1\nmodels: [{ id: "${model}", aliases: [alfa] }, { id: "${slow}", preset: { threads: 1 } }]\n`;
  const gateway = await startTestGateway(t, { folders, yaml, environment });
  await gateway.converged();
  const run = (...args: readonly string[]) => commandHere(folders, args, environment);
  const refused = async (expected: RegExp, ...args: readonly string[]): Promise<void> => {
    const { generation } = gateway.gateway.status();
    const { code, stdout, stderr } = await run(...args);
    assert.deepEqual([code, stdout], [1, ""], stderr);
    assert.match(stderr, expected);
    assert.equal(gateway.gateway.status().generation, generation);
  };

  await t.test("load, eject", async () => {
    const loaded = await run("load", "alfa", "--keep-alive=-1");
    assert.deepEqual([loaded.code, loaded.stderr], [0, ""]);
    assert.match(loaded.stdout, /^alfa is loaded \([\d.]+ m?s\)\.\n$/);
    assert.deepEqual(await loadedIds(gateway), [model]);
    assert.equal((await run("eject", model)).stdout, `${model} is unloaded.\n`);
    assert.deepEqual(await loadedIds(gateway), []);
    await refused(/acme\/none.*\n`models` lists/, "load", "acme/none:Q8_0");
    await refused(/--keep-alive .* must be seconds/, "load", model, "--keep-alive", "soon");
    await refused(/acme\/none/, "eject", "acme/none:Q8_0");
  });

  await t.test("ctx", async () => {
    assert.equal((await run("ctx", model, "1024")).stdout, `${model} has a context of 1024 tokens.\n`);
    assert.equal((await run("ctx", "alfa")).stdout, "1024 tokens\n");
    await refused(/TOKENS must be a number/, "ctx", model, "many");
  });

  await t.test("show", async () => {
    const { code, stdout } = await run("show", "alfa");
    assert.equal(code, 0);
    assert.match(stdout, /^MODEL +acme\/alpha:Q8_0$/m);
    assert.match(stdout, /^Context +1024, trained with 8192$/m);
    assert.match(stdout, /^Aliases +alfa, /m);
    assert.match(stdout, /^Can do +completion/m);
    const json = JSON.parse((await run("show", model, "--json")).stdout) as Record<string, unknown>;
    assert.deepEqual([json["id"], (json["status"] as { id: string }).id], [model, model]);
    await refused(/acme\/none/, "show", "acme/none:Q8_0");
  });

  await t.test("search, files, pull by run", async () => {
    assert.match((await run("search", "new")).stdout, /^REPOSITORY .*\nacme\/new-GGUF +12 +3\n/);
    assert.match((await run("search", "nothing-such")).stdout, /^The hub has no GGUF models for "nothing-such"/);
    await refused(/--limit must be/, "search", "new", "--limit", "0");
    const { stdout } = await run("files", "acme/new-GGUF");
    assert.match(stdout, /^acme\/new-GGUF:Q4_0 +[\d.]+ kB +new-Q4_0\.gguf\nacme\/new-GGUF:Q8_0 /m);
    await refused(/acme\/none/, "files", "acme/none");
    await refused(/'alpa' not found; did you mean acme\/alpha:Q8_0\?/, "run", "alpa", "hi");
    await refused(
      /acme\/new-GGUF:Q8_0 is not here: `.* pull acme\/new-GGUF:Q8_0.*` gets it/,
      "run",
      "acme/new-GGUF:Q8_0",
      "hi",
    );
    const pulled = await run("run", "acme/new-GGUF:Q8_0", "hi", "--pull");
    assert.deepEqual([pulled.code, pulled.stdout], [0, `${answersOf("new").hello}\n`]);
  });

  await t.test("run with a prompt; a chat needs a terminal", async (st) => {
    const once = await run("run", model, "say", "hi");
    assert.deepEqual([once.code, once.stdout, once.stderr], [0, `${answersOf("alpha").hello}\n`, ""]);
    const piped = await runCommand(st, folders, ["run", model, "-"], environment, "think about it");
    assert.deepEqual([piped.code, piped.stdout], [0, `${answersOf("alpha").afterReasoning}\n`]);
    const empty = await runCommand(st, folders, ["run", model], environment, "");
    assert.deepEqual([empty.code, empty.stdout], [1, ""]);
    assert.match(empty.stderr, /a chat needs a terminal/);
  });

  await t.test("a chat in a terminal: streamed, stopped, saved, forgotten", async (st) => {
    const line = commandLine(["run", slow, "--state", folders.stateDir]).join(" ");
    const chat = spawn("script", ["-qefc", line, "/dev/null"], {
      cwd: folders.root,
      stdio: ["pipe", "pipe", "inherit"],
      env: { PATH: process.env["PATH"], HOME: folders.root, TERM: "dumb" },
    });
    cleanUp(st, async () => void (chat.exitCode === null && chat.kill("SIGKILL")));
    let seen = "";
    chat.stdout.on("data", (bytes: Buffer) => {
      seen += bytes.toString();
    });
    const closed = once(chat, "close");
    let from = 0;
    /** Types once the output since the last time has the pattern. */
    const type = async (text: string, after: RegExp): Promise<void> => {
      await until(`${after} in ${seen}`, () => after.test(seen.slice(from)));
      from = seen.length;
      chat.stdin.write(text);
    };
    await type("say hi\r", />>> /);
    await type("forever\r", /Hello from slow, running on the real engine\.[\s\S]*>>> /);
    await type("\u0003", /goes on and on/);
    await type("/ctx 2048\r", /\(stopped\)[\s\S]*>>> /);
    await type("/ctx much\r", /2048 tokens/);
    await type("/save chat.md\r", /the context size is a number of tokens/);
    await type("/save chat.md\r", /Saved in chat\.md/);
    await type("/clear\r", /chat\.md cannot be written \(EEXIST\)/);
    await type("/save chat.json\r", /Forgotten/);
    await type("\u0004", /Saved in chat\.json/);
    const [code] = (await closed) as [number];
    assert.equal(code, 0, seen);
    const saved = await readFile(join(folders.root, "chat.md"), "utf8");
    assert.match(
      saved,
      /^# Chat with acme\/slow:Q8_0\n\n## You\n\nsay hi\n\n## Model\n\nHello from slow,.*\n\n## You\n\nforever\n\n## Model\n\nslow goes on/,
    );
    assert.deepEqual(JSON.parse(await readFile(join(folders.root, "chat.json"), "utf8")), {
      model: slow,
      messages: [],
    });
    assert.equal((await run("ctx", slow)).stdout, "2048 tokens\n");
  });

  await t.test("requests, reconcile", async () => {
    assert.equal((await run("requests")).stdout, "No request is in flight.\n");
    const answer = fetch(`${gateway.url}/v1/chat/completions`, chatWith(slow, "forever", { stream: true }));
    const row = /^ID .*\n(\d+) +acme\/slow:Q8_0 +\/chat\/completions +answering +\d+s\n$/;
    let id = "";
    await until("an answer", async () => {
      id = row.exec((await run("requests")).stdout)?.[1] ?? "";
      return id !== "";
    });
    assert.equal((await run("requests", "cancel", id)).stdout, `Request ${id} is cancelled.\n`);
    assert.match(await (await answer).text(), /"code":"cancelled"/);
    await refused(/no request \d+ is in flight: `.* requests.*` lists them/, "requests", "cancel", id);
    await refused(/ID must be/, "requests", "cancel", "first");
    const again = await run("reconcile");
    assert.deepEqual([again.code, again.stdout], [0, "Everything is as the document says.\n"]);
  });

  await t.test("rpc", async () => {
    assert.match((await run("rpc")).stdout, /^RPC mode: single\nNo workers: `.* rpc add HOST:PORT.*` adds one\.\n$/);
    assert.match((await run("rpc", "add", "127.0.0.1:9")).stdout, /^RPC mode: single; workers: 127\.0\.0\.1:9\n/);
    assert.match((await run("rpc")).stdout, /^WORKER .*\n127\.0\.0\.1:9 /m);
    assert.match((await run("rpc", "remove", "127.0.0.1:9")).stdout, /^RPC mode: single; workers: none\n/);
    await refused(/the mode is single or rpc, not "both"/, "rpc", "mode", "both");
    await refused(/must be|HOST:PORT|worker/, "rpc", "add", "nowhere");
  });

  await t.test("voice, transcriber", async () => {
    assert.match((await run("voice")).stdout, /^No voice is here: `.* voice search.*\nNone is chosen: `.* voice NAME/);
    assert.match((await run("transcriber")).stdout, /^No transcription model is here/);
    await refused(/voice/, "voice", "../etc");
    let isAway = true;
    hub.failNext({ status: 503, times: 100, match: ({ path }) => isAway && path.includes("voices.json") });
    await refused(/nosuch cannot be had: .*hub/, "voice", "nosuch");
    isAway = false;
    await refused(
      /^model-gateway: nosuch cannot be had: there is no voice "nosuch" \(`.* voice search/,
      "voice",
      "nosuch",
    );
    await refused(/nosuch cannot be had: the hub does not list it \(`.* transcriber search/, "transcriber", "nosuch");
    await refused(/name the sound file with -f/, "speak", "hello");
    await refused(/none\.wav cannot be read \(ENOENT\)/, "transcribe", join(folders.root, "none.wav"));
  });

  await t.test("doctor: nothing fails; the archive has no secret", async (st) => {
    const secrets = { HF_TOKEN: "hf_doctor0a1b2c3d4e5f", NVIDIA_API_KEY: "nvapi-doctor-secret" };
    const { code, stdout } = await commandHere(folders, ["doctor", "--json"], { ...environment, ...secrets });
    const { ok, checks } = JSON.parse(stdout) as {
      ok: boolean;
      checks: { id: string; result: string; evidence: string }[];
    };
    const wrong = checks.filter(({ result }) => result === "failed");
    assert.deepEqual([code, ok, wrong], [0, true, []]);
    const of = (id: string): string | undefined => checks.find((check) => check.id === id)?.evidence;
    assert.equal(of("port"), `the gateway listens on ${gateway.url}`);
    assert.match(of("engine-runs") ?? "", /^llama-server \S+/);
    assert.match(of("hub") ?? "", /^http:\S+ answers in \d+ ms$/);
    assert.match(of("thrashing") ?? "", /^\d+ loads and \d+ unloads in /);
    // It is written into the working folder: a process of its own has one.
    const preset = `grammar: "hf_indocument0a1b2c3d"`;
    await folders.writeConfig(yaml.replace("threads: 1", `threads: 1, ${preset}`));
    const [node, ...line] = commandLine(["doctor", "--bundle", "--state", folders.stateDir]);
    const env = {
      PATH: process.env["PATH"],
      HOME: folders.root,
      HF_HUB_CACHE: folders.cacheDir,
      ...environment,
      ...secrets,
    };
    const child = spawn(node, line, { cwd: folders.root, env, stdio: ["ignore", "ignore", "pipe"] });
    cleanUp(st, async () => void (child.exitCode === null && child.kill("SIGKILL")));
    const stderr = await text(child.stderr);
    const [, archive = ""] = /^(\S+\.tar\.gz) is the support archive/m.exec(stderr) ?? [];
    assert.equal((await stat(archive)).mode & 0o777, 0o600, stderr);
    await promisify(execFile)("tar", ["-xzf", archive, "-C", folders.root]);
    const folder = archive.replace(".tar.gz", "");
    const files = await readdir(folder);
    assert.ok(
      ["doctor.json", "gateway.yaml", "status.json", "metrics.txt", "log-router.txt"].every((file) =>
        files.includes(file),
      ),
      files.join(),
    );
    const all = (await Promise.all(files.map((file) => readFile(join(folder, file), "utf8")))).join("\n");
    assert.match(all, /\(redacted\)/);
    for (const secret of [...Object.values(secrets), "hf_indocument0a1b2c3d"]) assert.ok(!all.includes(secret), secret);
    await folders.writeConfig(yaml);
  });

  await t.test("doctor --pre: an empty machine, and one where it cannot start", async (st) => {
    const empty = await makeFolders(st);
    const first = await commandHere(empty, ["doctor", "--pre"], environment);
    assert.equal(first.code, 0, first.stdout);
    assert.match(first.stdout, /^program\n-------\n√ versions: Model Gateway /);
    assert.match(first.stdout, /^√ document: \S+gateway\.yaml: the first start writes it$/m);
    await empty.writeConfig("version: 2\n");
    const port = new URL(gateway.url).port;
    const broken = await commandHere(empty, ["doctor", "--pre", "--port", port, "--host", "0.0.0.0"], {
      LLAMA_SERVER: "/nowhere",
    });
    assert.equal(broken.code, 1);
    for (const id of ["document", "engine-found", "exposure", "port"])
      assert.match(broken.stdout, new RegExp(`^× ${id}: `, "m"));
    assert.match(broken.stdout, /^‼ hub: cannot reach the hub/m);
    assert.match(
      (await commandHere(empty, ["doctor"])).stdout,
      /^× gateway-runs: no gateway runs on the state folder/m,
    );
  });

  await t.test("completion: the words of a command, the models of the gateway", async () => {
    assert.equal((await run("completion", "bash", "--", "eje")).stdout, "eject\n");
    assert.equal((await run("completion", "zsh", "--", "eject", "")).stdout, `${model}\nacme/new-GGUF:Q8_0\n${slow}\n`);
    await refused(/there is no completion for tcsh: choose bash, zsh or fish/, "completion", "tcsh");
  });
});
