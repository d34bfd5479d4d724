// `import` with files as Ollama and llama-swap have them: what it prints, what it writes, and what it leaves alone.
import assert from "node:assert/strict";
import { mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { modelHead } from "../../support/cache-folder.ts";
import { commandHere } from "../../support/command.ts";
import { type GatewayFolders, makeFolders } from "../../support/folders.ts";
import { modelBytes, talkingModel } from "../../support/models.ts";
import { ollamaBlob, putOllamaManifest, putOllamaModel } from "../../support/ollama-store.ts";

const talker = modelBytes(talkingModel("talker"));

async function withStore(t: TestContext) {
  const folders = await makeFolders(t);
  const store = join(folders.root, ".ollama", "models");
  await putOllamaModel(store, "talker/1b", {
    layers: { model: talker, template: "{{ .Prompt }}", params: '{"num_ctx":1024,"temperature":0.5}', license: "MIT" },
  });
  return { ...folders, store, run: (...args: readonly string[]) => commandHere(folders, ["import", ...args]) };
}

const unchanged = async ({ stateDir }: GatewayFolders) => assert.deepEqual(await readdir(stateDir), []);

describe("import ollama", () => {
  it("prints a document, and changes nothing", async (t) => {
    const { store, run, ...folders } = await withStore(t);
    const { code, stdout, stderr } = await run("ollama");
    assert.equal(code, 0, stderr);
    assert.equal(
      stdout,
      `version: 1
models:
  - id: ollama/talker-1b:Q4_K_M
    source: ${ollamaBlob(store, talker)}
    ctxSize: 1024
    variants:
      - name: talker:1b
        set:
          temperature: 0.5
`,
    );
    assert.match(stderr, /^Ollama: keeps its keep-alive /);
    assert.match(
      stderr,
      /: its files become hard links in the model cache: .*\n1 model; nothing is changed yet: --write /,
    );
    await unchanged(folders);
  });

  it("imports what it can, with a sentence for each other one", async (t) => {
    const { store, run, configPath } = await withStore(t);
    const half = talker.subarray(0, 1000);
    await putOllamaModel(store, "half/latest", { layers: { model: half } });
    await putOllamaModel(store, "lost/latest", { layers: { model: "lost" } });
    await rm(ollamaBlob(store, "lost"));
    await putOllamaModel(store, "far/cloud", { layers: {}, config: { remote_host: "https://ollama.com:443" } });
    await putOllamaModel(store, "mlx/latest", { layers: { model: "m" }, config: { model_format: "safetensors" } });
    await putOllamaManifest(store, "torn/latest", '{"schemaVersion":2,');
    await putOllamaManifest(store, "torn/.DS_Store", "x");
    const { code, stderr } = await run("ollama", "--write");
    assert.equal(code, 0, stderr);
    for (const line of [
      `half:latest: is not taken over: it has a file that is no whole GGUF file: ${ollamaBlob(store, half)}`,
      `lost:latest: is not taken over: it lacks its file ${ollamaBlob(store, "lost")}`,
      "far:cloud: is not taken over: it has no file here: it runs in Ollama's cloud",
      "mlx:latest: is not taken over: it is not a GGUF file but safetensors",
      "torn:latest: is not taken over: it has a damaged manifest",
    ])
      assert.ok(stderr.split("\n").includes(line), `${line}\n${stderr}`);
    assert.ok(!stderr.includes("DS_Store"));
    assert.match(stderr, /1 model added to .*gateway\.yaml\. A running gateway takes them at once/);
    assert.match(await readFile(configPath, "utf8"), /^version: 1\nmodels:\n {2}- id: ollama\/talker-1b:Q4_K_M\n/);
  });

  it("adds to gateway.yaml, whose comments and models stay, and a second time nothing", async (t) => {
    const { run, configPath } = await withStore(t);
    const before = "# mine\nversion: 1\nmodels:\n  - acme/a:Q8_0 # a comment\n";
    await writeFile(configPath, before);
    assert.equal((await run("ollama", "--write")).code, 0);
    const after = await readFile(configPath, "utf8");
    assert.ok(after.startsWith(`${before}  - id: ollama/talker-1b:Q4_K_M\n`), after);
    const again = await run("ollama", "--write");
    assert.deepEqual([again.code, again.stdout], [0, ""]);
    assert.match(
      again.stderr,
      /ollama\/talker-1b:Q4_K_M: is in the document already and stays as it is\nNothing to add to /,
    );
    assert.equal(await readFile(configPath, "utf8"), after);
  });

  it("puts a projector beside gateway.yaml, as a link; one that cannot be linked is a remark", async (t) => {
    const { store, run, stateDir } = await withStore(t);
    const [a, b] = [modelHead("projector a"), modelHead("projector b")];
    await putOllamaModel(store, "eye/latest", { layers: { model: modelHead("eye"), projector: a } });
    await putOllamaModel(store, "ear/latest", { layers: { model: modelHead("ear"), projector: b } });
    const taken = join(stateDir, "ollama-ear-Q4_K_M-mmproj.gguf");
    await writeFile(taken, "another file");
    const shown = await run("ollama");
    assert.match(shown.stdout, /mmproj: \.\/ollama-eye-Q4_K_M-mmproj\.gguf/);
    assert.match(shown.stderr, /eye:latest: --write makes \.\/ollama-eye-Q4_K_M-mmproj\.gguf a hard link to /);
    const { code, stdout, stderr } = await run("ollama", "--write", "--json");
    assert.deepEqual([code, stderr], [0, ""]);
    const { written, document, remarks } = JSON.parse(stdout) as {
      written: boolean;
      document: { models: { id: string; mmproj?: string }[] };
      remarks: { about: string; message: string }[];
    };
    assert.deepEqual(
      [written, document.models.map(({ id, mmproj }) => [id, mmproj])],
      [
        true,
        [
          ["ollama/ear:Q4_K_M", undefined],
          ["ollama/eye:Q4_K_M", "./ollama-eye-Q4_K_M-mmproj.gguf"],
          ["ollama/talker-1b:Q4_K_M", undefined],
        ],
      ],
    );
    const [place, blob] = [join(stateDir, "ollama-eye-Q4_K_M-mmproj.gguf"), ollamaBlob(store, a)];
    assert.equal((await stat(place)).ino, (await stat(blob)).ino);
    const remark = remarks.find(({ message }) => message.startsWith("mmproj"));
    assert.equal(
      remark?.message,
      `mmproj is left out, as another file has its name: copy ${ollamaBlob(store, b)} to ${taken} and add \`mmproj\` to ollama/ear:Q4_K_M`,
    );
    assert.equal(await readFile(taken, "utf8"), "another file");
  });

  for (const [what, prepare, expected] of [
    [
      "no store",
      ({ store }) => rm(store, { recursive: true }),
      /^model-gateway: there is no model store of Ollama in .*\.ollama\/models: name its folder/,
    ],
    [
      "a broken gateway.yaml",
      ({ configPath }) => writeFile(configPath, "version: 2\n"),
      /gateway\.yaml:1:10: version: must be 1/,
    ],
    [
      "a gateway.yaml with YAML aliases",
      ({ configPath }) =>
        writeFile(
          configPath,
          "version: 1\nmodels: [{ id: a/b:Q8_0, preset: &p { top-k: 1 } }, { id: a/c:Q8_0, preset: *p }]\n",
        ),
      /cannot be edited, as none with aliases can: add by hand/,
    ],
  ] as readonly (readonly [string, (folders: GatewayFolders & { store: string }) => Promise<void>, RegExp])[])
    it(`${what}: a sentence, exit 1, nothing changed`, async (t) => {
      const folders = await withStore(t);
      await prepare(folders);
      const before = await readFile(folders.configPath, "utf8").catch(() => null);
      // Without a store in HOME it would find that of this machine.
      const { code, stdout, stderr } = await commandHere(folders, ["import", "ollama", "--write"], {
        OLLAMA_MODELS: folders.store,
      });
      assert.deepEqual([code, stdout], [1, ""]);
      assert.match(stderr, expected);
      assert.equal(await readFile(folders.configPath, "utf8").catch(() => null), before);
    });

  it("takes the folder that is named, or the one above it", async (t) => {
    const { run, root } = await withStore(t);
    for (const folder of [join(root, ".ollama"), join(root, ".ollama", "models")])
      assert.match((await run("ollama", folder)).stdout, /ollama\/talker-1b/);
    assert.match(
      (await run("ollama", root)).stderr,
      new RegExp(`there is no model store of Ollama in ${root}: name its folder`),
    );
  });
});

describe("import llama-swap", () => {
  const yaml = `
models:
  talker:
    cmd: llama-server --port \${PORT} -m talker-Q8_0.gguf -c 2048
    ttl: 300
    unlisted: true
  lost: { cmd: llama-server -m /nowhere/lost-Q8_0.gguf }
`;

  it("adds its models, with paths from the file's folder; what is missing or has no counterpart has its line", async (t) => {
    const folders = await makeFolders(t);
    const swap = join(folders.root, "swap");
    await mkdir(swap);
    await writeFile(join(swap, "talker-Q8_0.gguf"), talker);
    const config = join(swap, "config.yaml");
    await writeFile(config, yaml);
    const { code, stderr } = await commandHere(folders, ["import", "llama-swap", config, "--write"]);
    assert.equal(code, 0, stderr);
    assert.equal(
      await readFile(folders.configPath, "utf8"),
      `version: 1
models:
  - id: local/talker:Q8_0
    source: ${join(swap, "talker-Q8_0.gguf")}
    ctxSize: 2048
    keepAlive: 300
    aliases:
      - talker
`,
    );
    const lines = stderr.split("\n");
    assert.equal(lines[0], `${config}:6: talker: unlisted has no counterpart: every model is listed`);
    assert.equal(
      lines[1],
      `${config}:7: lost: is not taken over: /nowhere/lost-Q8_0.gguf is not there, or no whole GGUF file`,
    );
  });

  for (const [what, text, expected] of [
    ["no YAML", "models: [", /^model-gateway: .*config\.yaml:1:\d+: /],
    ["another YAML", "services: {}\n", /is no configuration of llama-swap: it has no `models`/],
    [
      "no model that can be had",
      "models: { a: { cmd: vllm serve x } }\n",
      /:1: a: is not taken over: it runs vllm.*\nNothing to add/,
    ],
  ] as const)
    it(`${what}: exit 1, nothing written`, async (t) => {
      const folders = await makeFolders(t);
      const config = join(folders.root, "config.yaml");
      await writeFile(config, text);
      const { code, stdout, stderr } = await commandHere(folders, ["import", "llama-swap", config, "--write"]);
      assert.deepEqual([code, stdout], [1, ""]);
      assert.match(stderr, expected);
      await unchanged(folders);
    });

  it("names a file that is not there", async (t) => {
    const { code, stderr } = await commandHere(await makeFolders(t), ["import", "llama-swap", "/nowhere.yaml"]);
    assert.deepEqual([code, stderr], [1, "model-gateway: there is no /nowhere.yaml\n"]);
  });
});
