// Every command in the `sh` blocks of README.md and docs/ is run as a reader would, against one gateway with its hub and engines.
import assert from "node:assert/strict";
import { type ExecFileOptions, execFile } from "node:child_process";
import { appendFile, copyFile, mkdir, symlink, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { type TestContext, test } from "node:test";
import { packageRoot } from "../../src/settings/settings.ts";
import { starterFileName, starterId } from "../../src/starter/starter-model.ts";
import { startCommand } from "../support/command.ts";
import { type CodeBlock, codeBlocks } from "../support/doc-pages.ts";
import { whisperServer } from "../support/engine.ts";
import { type GatewayFolders, makeFolders } from "../support/folders.ts";
import { startLoopbackHub } from "../support/loopback-hub.ts";
import { modelBytes, talkingModel } from "../support/models.ts";
import { putOllamaModel } from "../support/ollama-store.ts";
import { sherpa } from "../support/sherpa.ts";
import { addSpeechRepos } from "../support/speech.ts";

/** Blocks that are not run here, by their first line. */
const runElsewhere: Readonly<Record<string, string>> = {
  "npm ci && npm start": "starts the gateway that this test has; .ci/run installs, component/build.test.ts starts",
  "npm start -- --host 0.0.0.0": "listens on every address of the machine; http/access-command.test.ts has a free port",
  "npm start -- --port 9000": "has a fixed port; engine/command.test.ts has a free one",
  "npm start -- --hub-mirror http://FIRST:8484/hub --hub-mirror-key-file mirror.key":
    "needs a second machine; engine/hub-mirror.test.ts has a second gateway",
  "HF_ENDPOINT=http://FIRST:8484/hub HF_TOKEN=KEY npm start": "as above",
  "HF_ENDPOINT=http://FIRST:8484/hub HF_TOKEN=KEY hf download OWNER/NAME FILE.gguf":
    "needs Python; engine/hub-mirror.test.ts has the hub's JavaScript client",
  "npm start -- --pulls off": "needs a second gateway; engine/hub-mirror.test.ts has one",
  "npm install PATH-TO-THIS-FOLDER":
    "installs into another project; http/client.test.ts imports the client by its name",
  "model-gateway worker --host 192.168.1.20    # default: loopback only; --port 50052, --threads N":
    "has an address of another machine; engine/worker-command.test.ts runs it on loopback",
  "model-gateway engine install            # brings llama-fit-params with the engine":
    "downloads; test/run.ts installs all engines by the same code",
  "model-gateway engine install whisper    # speech to text":
    "downloads; test/run.ts installs all engines by the same code",
  "model-gateway package systemd --port 9000 > model-gateway.service":
    "depends on the account; component/cli/package-command.test.ts runs each",
  "model-gateway serve --host 0.0.0.0 --writes file --stop-delay 5 --stop-grace 60":
    "listens on every address of the machine; faults/replicas.test.ts starts three such gateways",
  "model-gateway serve --host 0.0.0.0 --metrics-open 10.0.0.0/8,fd00::/8":
    "listens on every address of the machine; component/http/auth/strangers.test.ts has open networks",
  "model-gateway status --all http://10.0.0.11:8484,http://10.0.0.12:8484,http://10.0.0.13:8484":
    "has addresses of other machines; faults/replicas.test.ts asks three, unit/cli/replica-table.test.ts has the table",
  "kill -TERM PID": "ends the gateway; http/load-signals.test.ts tells one to stop",
  "npm run bench -- drops": "takes minutes",
  "npm run bench -- replicas": "takes minutes",
  "npm run bench                          # five rounds": "takes minutes",
  "npm run bench -- chat      # beside the engine's own router, both with a real model": "takes minutes",
  "npm run bench -- edit": "takes minutes",
  "npm run bench -- pull": "takes minutes",
};

test("the commands of the docs", async (t) => {
  const reader = await startReader(t);
  const blocks = codeBlocks("sh");
  assert.ok(blocks.length > 35, `${blocks.length} blocks were found`);
  for (const block of blocks) {
    if (firstLine(block) in runElsewhere) continue;
    await t.test(`${block.page}: ${firstLine(block)}`, async () => {
      const { code, output } = await reader.run(block);
      assert.equal(code, 0, output);
    });
  }
  const examples = codeBlocks("ts");
  assert.equal(examples.length, 1);
  for (const example of examples) {
    await t.test(`${example.page}: the example`, async () => {
      const { code, output } = await reader.runModule(example);
      assert.equal(code, 0, output);
    });
  }
  const known = blocks.map(firstLine);
  assert.deepEqual(
    Object.keys(runElsewhere).filter((line) => !known.includes(line)),
    [],
  );
});

function firstLine({ code }: CodeBlock): string {
  return code.slice(0, code.indexOf("\n"));
}

interface Result {
  readonly code: number;
  readonly output: string;
}

interface Reader {
  run(block: CodeBlock): Promise<Result>;
  runModule(block: CodeBlock): Promise<Result>;
}

/** A gateway after its first start, and a shell beside it. */
async function startReader(t: TestContext): Promise<Reader> {
  const hub = await startLoopbackHub(t);
  addSpeechRepos(hub, { "en_US-lessac-medium": 22_050 });
  hub.addRepo("ggml-org/gemma-3-270m-it-GGUF", {
    files: { "gemma-3-270m-it-Q8_0.gguf": modelBytes(talkingModel("gemma")) },
  });
  const folders = await makeFolders(t);
  const { packageDir } = await sherpa();
  await mkdir(join(folders.stateDir, "engines"));
  await symlink(packageDir, join(folders.stateDir, "engines", basename(packageDir)));
  const environment = {
    HF_ENDPOINT: hub.endpoint,
    WHISPER_SERVER: await whisperServer(),
    GATEWAY_SPEECH_ENGINE: "embedded",
  };
  const serve = await startCommand(t, folders, ["serve"], environment);
  const [, base = ""] = await serve.output(/"url":"([^"]+)"/);
  await serve.output(/"try":/);
  // In the file: what a call has set is taken out by the page that shows `reset`.
  const speech = "speech: { transcription: { model: base.en }, synthesis: { voice: en_US-lessac-medium } }";
  await appendFile(folders.configPath, `\n${speech}\n`);
  // What docs/from-ollama.md and docs/from-llama-swap.md move in from.
  const talker = modelBytes(talkingModel("mover"));
  await putOllamaModel(join(folders.root, ".ollama", "models"), "mover/latest", { layers: { model: talker } });
  await writeFile(join(folders.root, "mover-Q8_0.gguf"), talker);
  await writeFile(join(folders.root, "config.yaml"), "models: { swapped: { cmd: llama-server -m mover-Q8_0.gguf } }\n");
  // The repository of docs/gitops.md, with the file that the document names.
  for (const file of [basename(folders.configPath), starterFileName])
    await copyFile(join(folders.stateDir, file), join(folders.root, file));
  const answer = await fetch(`${base}/api/reconcile?wait=true`, { method: "POST" });
  assert.equal(answer.status, 200, await answer.text());
  return { run: (block) => runBlock(folders, base, block), runModule: ({ code }) => runModule(base, code) };
}

/**
 * What a reader does not type: HTTP errors fail `curl`, an event stream ends after a second, exit code 2 of `plan`, `diff`, `apply` and `gc`
 * (there is something to do) is a success, and keys go to a state folder of their own: with a key the gateway asks every command for one.
 */
const shell = `
curl() {
  case "$*" in
    */api/events*) command curl -sS --max-time 1 "$@" || [ $? = 28 ] ;;
    *) command curl -sS --fail-with-body "$@" ;;
  esac
}
model-gateway() {
  local state="$STATE"
  [ "$1" = key ] && state="$KEYS_STATE"
  GATEWAY_STATE="$state" "$NODE" "$PROGRAM" "$@" || case "$1:$?" in
    plan:2 | diff:2 | apply:2 | gc:2) ;;
    *) return 1 ;;
  esac
}
`;

async function runBlock(folders: GatewayFolders, base: string, { page, code }: CodeBlock): Promise<Result> {
  const keysState = join(folders.root, `keys-${basename(page)}`);
  await mkdir(keysState, { recursive: true });
  const prelude = `set -euo pipefail\nexport BASE=${base} MODEL=${starterId}\n${shell}`;
  const env = {
    PATH: process.env["PATH"] ?? "",
    HOME: folders.root,
    HF_HUB_CACHE: folders.cacheDir,
    NODE: process.execPath,
    PROGRAM: join(packageRoot, "dist", "program", "cli.js"),
    STATE: folders.stateDir,
    KEYS_STATE: keysState,
  };
  return runProgram("bash", ["-c", prelude + atAddress(code, base)], { cwd: folders.root, env });
}

/** An example in TypeScript without types of its own. */
function runModule(base: string, code: string): Promise<Result> {
  return runProgram(process.execPath, ["--input-type=module", "--eval", atAddress(code, base)], { cwd: packageRoot });
}

/** The docs have the default address; here it is the one of this gateway. */
function atAddress(code: string, base: string): string {
  return code.replaceAll("http://127.0.0.1:8484", base);
}

function runProgram(program: string, args: readonly string[], options: ExecFileOptions): Promise<Result> {
  return new Promise((resolve) => {
    execFile(program, args, { ...options, timeout: 600_000 }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : 1, output: `${stdout.toString()}\n${stderr.toString()}` });
    });
  });
}
