// Installing sherpa-onnx with an npm that the test writes: whole or not at all, without a word to any registry.
import assert from "node:assert/strict";
import { chmod, mkdir, readdir, readFile, rename, rm, stat, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { installSherpa, locateSherpa } from "../../../../src/engines/install/sherpa.ts";
import { isRunning } from "../../../support/processes.ts";
import { refusal, scratchFolder, until } from "../../../support/scratch.ts";

interface World {
  readonly enginesDir: string;
  readonly prefix: string;
  install(options?: {
    path?: string;
    prefixes?: readonly string[];
    signal?: AbortSignal;
    registry?: string;
  }): ReturnType<typeof installSherpa>;
}

/** `version`: of the package that its npm installs; `code`: what the package is. */
async function world(t: TestContext, version = "1.13.8", code = ""): Promise<World> {
  const folder = await scratchFolder(t);
  const bin = join(folder, "bin");
  await mkdir(bin);
  const npm = `const fs = require("node:fs");
const dir = "node_modules/sherpa-onnx-node";
if (!process.argv.includes("--ignore-scripts") || process.argv.at(-1) !== "sherpa-onnx-node@1.13.8") process.exit(9);
fs.mkdirSync(dir, { recursive: true });
const { npm_config_registry: registry } = process.env;
fs.writeFileSync(dir + "/package.json", JSON.stringify({ version: ${JSON.stringify(version)}, registry }));
fs.writeFileSync(dir + "/index.js", ${JSON.stringify(code)});
`;
  await writeFile(join(bin, "npm"), `#!${process.execPath}\n${npm}`);
  await chmod(join(bin, "npm"), 0o755);
  const prefix = join(folder, "usr");
  await mkdir(join(prefix, "lib", "any-triplet", "espeak-ng-data", "lang"), { recursive: true });
  await writeFile(join(prefix, "lib", "any-triplet", "espeak-ng-data", "phontab"), "data");
  const enginesDir = join(folder, "engines");
  return {
    enginesDir,
    prefix,
    install: ({ path = bin, prefixes = [prefix], signal = new AbortController().signal, registry } = {}) =>
      installSherpa({
        enginesDir,
        environment: { PATH: path, npm_config_registry: registry },
        signal,
        prefixes,
        onProgress: () => undefined,
      }),
  };
}

describe("sherpa-onnx", { concurrency: true }, () => {
  it("is installed by npm with the system's language data, is found then, and again is no work", async (t) => {
    const { enginesDir, install } = await world(t);
    assert.equal(await locateSherpa(enginesDir), null);
    const installed = await install();
    assert.deepEqual(installed, await locateSherpa(enginesDir));
    assert.equal(installed.version, "1.13.8");
    assert.deepEqual((await readdir(installed.dataDir)).toSorted(), ["lang", "phontab"]);
    assert.deepEqual(await install({ path: "/nowhere" }), installed);
    assert.deepEqual(await readdir(enginesDir), ["sherpa-1.13.8"]);
  });

  it("is installed once where several do so at the same time, and nobody is told of the others", async (t) => {
    const { enginesDir, install } = await world(t);
    const inodes = new Set<number>();
    const [first, ...others] = await Promise.all(
      [0, 1, 2, 3].map(async () => {
        const installed = await install();
        // What somebody was told to be there is what everybody else gets.
        inodes.add((await stat(installed.packageDir)).ino);
        return installed;
      }),
    );
    for (const other of others) assert.deepEqual(other, first);
    assert.equal(inodes.size, 1);
    assert.deepEqual(await locateSherpa(enginesDir), first);
    assert.deepEqual(await readdir(enginesDir), ["sherpa-1.13.8"]);
  });

  it("takes the place of what lies damaged under its name, be it a link", async (t) => {
    const { enginesDir, install } = await world(t);
    const { packageDir } = await install();
    await rm(join(packageDir, "espeak-ng-data"), { recursive: true });
    assert.deepEqual(await install(), await locateSherpa(enginesDir));
    await rm(packageDir, { recursive: true });
    await symlink(join(enginesDir, "gone"), packageDir);
    assert.deepEqual(await install(), await locateSherpa(enginesDir));
    assert.deepEqual(await readdir(enginesDir), ["sherpa-1.13.8"]);
  });

  it("is used where it was moved and linked to", async (t) => {
    const { enginesDir, install } = await world(t);
    const installed = await install();
    const elsewhere = join(dirname(enginesDir), "elsewhere");
    await rename(installed.packageDir, elsewhere);
    await symlink(elsewhere, installed.packageDir);
    assert.deepEqual(await install({ path: "/nowhere" }), installed);
  });

  it("comes from the registry that npm's own variable names", async (t) => {
    const { install } = await world(t);
    const { packageDir } = await install({ registry: "http://127.0.0.1:9/npm/" });
    const manifest = await readFile(join(packageDir, "node_modules", "sherpa-onnx-node", "package.json"), "utf8");
    assert.equal((JSON.parse(manifest) as { registry?: string }).registry, "http://127.0.0.1:9/npm/");
  });

  for (const [what, version, code, options, expected] of [
    ["without npm", "1.13.8", "", { path: "/nowhere" }, /npm is not in PATH/],
    ["where npm gives another version", "2.0.0", "", {}, /npm has not installed sherpa-onnx-node 1\.13\.8/],
    ["where it does not load here", "1.13.8", "throw new Error('no binary for this system')", {}, /no binary for this/],
    ["without language data", "1.13.8", "", { prefixes: [] }, /Install espeak-ng with the system's package tool/],
  ] as const) {
    it(`is not installed ${what}, and nothing is left`, async (t) => {
      const { enginesDir, install } = await world(t, version, code);
      assert.match((await refusal(install(options))).message, expected);
      assert.deepEqual(await readdir(enginesDir).catch(() => []), []);
    });
  }

  it("is not installed once it is cancelled, and nothing is left", async (t) => {
    const note = join(await scratchFolder(t), "pid");
    const hanging = `require("node:fs").writeFileSync(${JSON.stringify(note)}, process.pid + "\\n"); setTimeout(() => 0, 60000)`;
    const { enginesDir, install } = await world(t, "1.13.8", hanging);
    const stop = new AbortController();
    const work = refusal(install({ signal: stop.signal }));
    const pid = await until("it is loaded", async () => {
      const text = await readFile(note, "utf8").catch(() => "");
      return text.endsWith("\n") && Number(text);
    });
    stop.abort();
    assert.equal((await work).code, "cancelled");
    assert.deepEqual(await readdir(enginesDir), []);
    assert.equal(await isRunning(pid), false);
  });
});
