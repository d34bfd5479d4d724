// Which engine is used, how its coming, going and replacement are noticed, and what of our environment it gets.
import assert from "node:assert/strict";
import { mkdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { createEngineSource, type EngineSource } from "../../../../src/engines/llama/engine-source.ts";
import { engineEnvironment } from "../../../../src/engines/process/engine-environment.ts";
import { scratchFolder } from "../../../support/scratch.ts";

const signal = new AbortController().signal;

/** A program that knows `--ctx-size` and one option of its own. */
async function program(folder: string, option: string): Promise<string> {
  await mkdir(folder, { recursive: true });
  const path = join(folder, "llama-server");
  // Made beside it and renamed: a running script must not be written over.
  await writeFile(
    `${path}.new`,
    `#!/bin/sh\necho '-c,    --ctx-size N   size (env: LLAMA_ARG_CTX_SIZE)'\necho '--${option}   its own'\n`,
    { mode: 0o755 },
  );
  await rename(`${path}.new`, path);
  return path;
}

interface Looking {
  readonly root: string;
  readonly bin: string;
  readonly source: EngineSource;
  changes(): number;
}

async function looking(t: TestContext, explicit?: (root: string) => string): Promise<Looking> {
  const root = await scratchFolder(t);
  const bin = join(root, "bin");
  let changes = 0;
  const source = createEngineSource({
    explicit: explicit?.(root),
    enginesDir: join(root, "engines"),
    installCommand: "model-gateway engine install llama",
    environment: { PATH: bin },
    install: false,
    onProgress: () => undefined,
    onChange: () => void changes++,
  });
  return { root, bin, source, changes: () => changes };
}

describe("the engine", () => {
  it("is found with the options that it knows, and the finding is told", async (t) => {
    const { bin, source, changes } = await looking(t);
    const path = await program(bin, "one");
    assert.deepEqual(source.state(), { binary: "missing", build: "", knownOptions: null });
    await source.prepare(signal);
    assert.equal(source.path(), path);
    assert.equal(source.state().binary, "present");
    assert.deepEqual(
      ["ctx-size", "c", "LLAMA_ARG_CTX_SIZE", "one", "two"].map((key) => source.state().knownOptions?.has(key)),
      [true, true, true, true, false],
    );
    assert.equal(source.problem(), null);
    assert.equal(changes(), 1);
    assert.equal(await source.look(), false);
  });

  it("that comes later is noticed", async (t) => {
    const { bin, source } = await looking(t);
    await source.prepare(signal);
    assert.equal(await source.look(), false);
    assert.deepEqual([source.path(), source.state().binary], [null, "missing"]);
    const path = await program(bin, "one");
    assert.equal(await source.look(), true);
    assert.deepEqual([source.path(), source.state().binary], [path, "present"]);
    assert.equal(await source.look(), false);
  });

  it("that is replaced in its place is a new one, with its own options", async (t) => {
    const { bin, source } = await looking(t);
    await program(bin, "one");
    await source.prepare(signal);
    await program(bin, "two");
    assert.equal(await source.look(), true);
    assert.deepEqual(
      ["one", "two"].map((key) => source.state().knownOptions?.has(key)),
      [false, true],
    );
    assert.equal(await source.look(), false);
  });

  it("that an upgrade links anew is a new one, though the old file stays", async (t) => {
    const { root, bin, source } = await looking(t);
    const one = await program(join(root, "cellar", "1"), "one");
    const two = await program(join(root, "cellar", "2"), "two");
    await mkdir(bin);
    await symlink(one, join(bin, "llama-server"));
    await source.prepare(signal);
    assert.equal(source.path(), one);
    await symlink(two, join(bin, "next"));
    await rename(join(bin, "next"), join(bin, "llama-server"));
    assert.equal(await source.look(), true);
    assert.equal(source.path(), two);
    assert.equal(source.state().knownOptions?.has("two"), true);
  });

  it("that goes is missing, and is found again when it is back", async (t) => {
    const { bin, source } = await looking(t);
    const path = await program(bin, "one");
    await source.prepare(signal);
    await rm(path);
    assert.equal(await source.look(), true);
    assert.deepEqual([source.path(), source.state().binary], [null, "missing"]);
    assert.equal(await source.look(), false);
    await program(bin, "one");
    assert.equal(await source.look(), true);
    assert.equal(source.state().binary, "present");
  });

  it("that was set and is not there is a problem that says so, and another one does not take its place", async (t) => {
    const { root, bin, source } = await looking(t, (folder) => join(folder, "set", "llama-server"));
    await program(bin, "one");
    await source.prepare(signal);
    assert.equal(source.path(), null);
    assert.equal(source.problem()?.reason, "EngineMissing");
    assert.match(source.problem()?.message ?? "", /set\/llama-server/);
    const path = await program(join(root, "set"), "two");
    assert.equal(await source.look(), true);
    assert.deepEqual([source.path(), source.problem()], [path, null]);
  });

  it("whose help cannot be read is used all the same", async (t) => {
    const { bin, source } = await looking(t);
    await mkdir(bin);
    await writeFile(join(bin, "llama-server"), "#!/bin/sh\nexit 1\n", { mode: 0o755 });
    await source.prepare(signal);
    const { binary, build, knownOptions } = source.state();
    assert.deepEqual([binary, build !== "", knownOptions], ["present", true, null]);
  });

  it("is asked at each start whether it has main memory alone, until it has had a device", async (t) => {
    const { root, bin, source } = await looking(t);
    const list = join(root, "devices");
    await mkdir(bin);
    const help = "echo '-c, --ctx-size N  size'; echo '--fit on|off  fit'; echo '--list-devices  print them'";
    const script = `#!/bin/sh\n[ "$1" = --list-devices ] && exec /bin/cat '${list}'\n${help}\n`;
    await writeFile(join(bin, "llama-server"), script, { mode: 0o755 });
    await source.prepare(signal);
    assert.equal(await source.isAlone(), false, "it could not say");
    await writeFile(list, "Available devices:\n  (none)\n");
    assert.equal(await source.isAlone(), true);
    await writeFile(list, "Available devices:\n  CUDA0: Some card (24135 MiB, 23000 MiB free)\n");
    assert.equal(await source.isAlone(), false);
    await rm(list);
    assert.equal(await source.isAlone(), false);
  });

  it("that cannot list its devices may have some", async (t) => {
    const { bin, source } = await looking(t);
    await program(bin, "one");
    await source.prepare(signal);
    assert.equal(await source.isAlone(), false);
  });
});

describe("the engine's environment", () => {
  it("has what finds hardware and libraries, and no key, token or setting of ours", () => {
    const passed = {
      PATH: "/bin",
      HOME: "/home/p",
      LANG: "C",
      LC_ALL: "C",
      TMPDIR: "/tmp",
      LD_LIBRARY_PATH: "/lib",
      CUDA_VISIBLE_DEVICES: "0",
      GGML_METAL_NDEBUG: "1",
      OMP_NUM_THREADS: "2",
      HSA_OVERRIDE_GFX_VERSION: "10.3.0",
    };
    const kept = {
      HF_TOKEN: "x",
      HF_ENDPOINT: "x",
      HUGGING_FACE_HUB_TOKEN: "x",
      GATEWAY_LICENSE_KEY: "x",
      GATEWAY_STATE: "x",
      LLAMA_API_KEY: "x",
      LLAMA_ARG_CTX_SIZE: "4096",
      LLAMA_ARG_RPC: "x",
      NVIDIA_API_KEY: "x",
      GGML_API_TOKEN: "x",
      CUDA_SECRET: "x",
      AWS_SECRET_ACCESS_KEY: "x",
      HTTPS_PROXY: "http://user:password@proxy",
      LD_PRELOAD: "x",
      NODE_OPTIONS: "x",
    };
    assert.deepEqual(
      engineEnvironment({ ...passed, ...kept, UNSET: undefined }, { EXTRA: "1", LLAMA_API_KEY: "own" }),
      { ...passed, EXTRA: "1", LLAMA_API_KEY: "own" },
    );
  });
});
