// What runs before the program itself: the check of Node's version, and the build that `npm start` begins with.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { copyFile, mkdir, readdir, readFile, symlink, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it, type TestContext, test } from "node:test";
import { parseSource } from "../../src/desired/document/parse.ts";
import { packageRoot } from "../../src/settings/settings.ts";
import { scratchFolder } from "../support/scratch.ts";

interface Ended {
  readonly code: number | null;
  readonly output: string;
}

function run(args: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (text: Buffer) => (output += text.toString()));
    child.once("close", (code) => resolve({ code, output }));
  });
}

const entries = [join(packageRoot, "dist", "program", "cli.js"), join(packageRoot, "build.cjs")];

describe("a Node that is too old", () => {
  for (const entry of entries) {
    const name = entry.slice(packageRoot.length + 1);

    it(`is told so by ${name} in one sentence, with both versions`, async (t) => {
      const { engines } = JSON.parse(await readFile(join(packageRoot, "package.json"), "utf8")) as {
        engines: { node: string };
      };
      const least = engines.node.replace(">=", "");
      const preload = join(await scratchFolder(t), "old-node.cjs");
      for (const version of ["12.22.12", "18.20.8", "20.18.3"]) {
        const versions = `{ ...process.versions, node: ${JSON.stringify(version)} }`;
        await writeFile(preload, `Object.defineProperty(process, "versions", { value: ${versions} });`);
        assert.deepEqual(await run(["--require", preload, entry, "version"]), {
          code: 1,
          output: `model-gateway: Node ${least} or newer is needed, and this is Node ${version}\n`,
        });
      }
    });

    it(`can parse ${name}`, async () => {
      const source = await readFile(entry, "utf8");
      assert.doesNotMatch(source, /^import /m);
      assert.doesNotMatch(source, /\?\?|\?\.|&&=|\|\|=|^await /m, "syntax newer than Node 12");
    });
  }
});

/** A project of one file, which the real compiler and build script take for the program. */
async function makeProject(t: TestContext): Promise<{
  readonly source: string;
  readonly program: string;
  build(...flags: readonly string[]): Promise<Ended>;
}> {
  const root = await scratchFolder(t);
  for (const name of ["build.cjs", "tsconfig.json", "package.json"])
    await copyFile(join(packageRoot, name), join(root, name));
  await symlink(join(packageRoot, "node_modules"), join(root, "node_modules"));
  for (const folder of ["src", "src/page", "src/cli", "schemas"]) await mkdir(join(root, folder));
  for (const name of ["main.tsx", "page.css", "index.html", "icon.svg"])
    await writeFile(join(root, "src", "page", name), "");
  await writeFile(join(root, "schemas", "one.ts"), "export const one = 1;\n");
  for (const name of ["main.ts", "compile-cache.ts"]) await writeFile(join(root, "src", "cli", name), "");
  const source = join(root, "src", "cli", "cli.ts");
  await writeFile(source, "export const said = 1;\n");
  return {
    source,
    program: join(root, "dist", "program", "cli.js"),
    build: (...flags) => run([join(root, "build.cjs"), ...flags]),
  };
}

describe("the build of `npm start`", () => {
  it("compiles where there is nothing yet or a source changed, and not where only times did", async (t) => {
    const { source, program, build } = await makeProject(t);
    assert.deepEqual(await build("--if-changed"), { code: 0, output: "" });
    assert.match(await readFile(program, "utf8"), /said = 1/);

    await writeFile(program, "// not compiled again");
    await utimes(source, new Date(), new Date());
    await build("--if-changed");
    assert.equal(await readFile(program, "utf8"), "// not compiled again");
    await writeFile(source, "export const said = 2;\n");
    await build("--if-changed");
    assert.match(await readFile(program, "utf8"), /said = 2/);

    await writeFile(program, "// compiled always");
    await build();
    assert.match(await readFile(program, "utf8"), /said = 2/);
  });

  it("fails where the compiler does, and again the next time", async (t) => {
    const { source, build } = await makeProject(t);
    await build();
    await writeFile(source, "export const said: string = 3;\n");
    for (const _ of [1, 2]) {
      const { code, output } = await build("--if-changed");
      assert.notEqual(code, 0);
      assert.match(output, /cli\.ts.*not assignable/);
    }
    await writeFile(source, "export const said = 1;\n");
    assert.equal((await build("--if-changed")).code, 0);
  });
});

test("the program checks documents by compiled code, which finds what ajv finds", async (t) => {
  const root = await scratchFolder(t);
  const path = join(root, "gateway.yaml");
  const text = `version: 2
contxt: {}
models: [3, { id: no, ctxSize: -1, preset: { -x: [] } }, acme/a:Q8_0]
rpc: { workers: [a, a], mode: both }
speech: { synthesis: {} }
`;
  await writeFile(path, text);
  const program = join(packageRoot, "dist", "program");
  const { code, output } = await run([join(program, "cli.js"), "validate", path, "--json", "--state", root]);
  assert.equal(code, 1);
  const parsed = parseSource(text);
  assert.ok(!parsed.ok && parsed.problems.length > 8);
  const { files } = JSON.parse(output) as { readonly files: readonly { readonly problems: unknown }[] };
  assert.deepEqual(files[0]?.problems, parsed.problems);
  const bundled = await Promise.all((await readdir(program)).map((name) => readFile(join(program, name), "utf8")));
  const checkers = bundled.filter((each) => each.includes("// src/desired/document/schema-check.ts"));
  assert.equal(checkers.length, 1);
  assert.ok(!checkers[0]?.includes("node_modules/ajv/dist/compile"));
});
