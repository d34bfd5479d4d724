// `model-gateway validate FILE`, as an editor or CI runs it.
import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { validateCommand } from "../../../src/cli/validate.ts";
import { readSettings } from "../../../src/settings/settings.ts";
import { refusal, scratchFolder } from "../../support/scratch.ts";

const run = (path: string): Promise<number> => validateCommand(readSettings(["validate", path], {}));

interface Verdict {
  readonly code: number;
  readonly out: readonly string[];
  readonly problems: readonly string[];
}

async function validate(t: TestContext, text: string): Promise<Verdict & { readonly path: string }> {
  const path = join(await scratchFolder(t), "gateway.yaml");
  await writeFile(path, text);
  const out: string[] = [];
  const problems: string[] = [];
  const log = t.mock.method(console, "log", (line: string) => void out.push(line));
  const error = t.mock.method(console, "error", (line: string) => void problems.push(line));
  try {
    return { path, code: await run(path), out, problems };
  } finally {
    log.mock.restore();
    error.mock.restore();
  }
}

describe("validate", () => {
  it("says that a valid file is, and ends with 0", async (t) => {
    const { path, code, out, problems } = await validate(t, "version: 1\nmodels: [acme/a:Q8_0]\n");
    assert.deepEqual({ code, out, problems }, { code: 0, out: [`${path} is valid`], problems: [] });
  });

  it("lists every problem as FILE:LINE:COLUMN, and ends with 1", async (t) => {
    const { path, code, out, problems } = await validate(
      t,
      "version: 1\nmodels:\n  - acme/a:Q8_0\n  - id: acme/b:Q8_0\n    ctxSise: 5\n    ctxSize: -1\n",
    );
    assert.deepEqual({ code, out }, { code: 1, out: [] });
    assert.deepEqual([...problems].sort(), [
      `${path}:5:5: models[1].ctxSise: unknown key`,
      `${path}:6:14: models[1].ctxSize: must be >= 1`,
    ]);
  });

  it("tells where the YAML is broken", async (t) => {
    const { path, code, problems } = await validate(t, "version: 1\nmodels: [\n");
    assert.equal(code, 1);
    assert.ok(problems[0]?.startsWith(`${path}:3:1: `), problems[0]);
  });

  it("refuses a file that is not there or cannot be read", async (t) => {
    const root = await scratchFolder(t);
    await mkdir(join(root, "folder"));
    for (const [path, message] of [
      [join(root, "none"), `there is no ${join(root, "none")}`],
      [join(root, "folder"), `${join(root, "folder")} cannot be read (EISDIR)`],
    ] as const) {
      const error = await refusal(run(path));
      assert.deepEqual([error.code, error.message], ["invalid_request", message]);
    }
  });
});
