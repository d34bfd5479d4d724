// `model-gateway validate FILE`, as an editor or CI runs it.
import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { validateCommand } from "../../../src/cli/validate.ts";
import { readSettings } from "../../../src/settings/settings.ts";
import { modelBytes, talkingModel } from "../../support/models.ts";
import { refusal, scratchFolder } from "../../support/scratch.ts";

/** In a state folder without an engine. */
const run = (path: string, ...flags: readonly string[]): Promise<number> =>
  validateCommand(readSettings(["validate", path, ...flags, "--state", dirname(path)], {}));

interface Verdict {
  readonly code: number;
  readonly out: readonly string[];
  readonly problems: readonly string[];
}

async function validate(
  t: TestContext,
  text: string,
  files: Readonly<Record<string, string | Uint8Array>> = {},
  ...flags: readonly string[]
): Promise<Verdict & { readonly path: string }> {
  const path = join(await scratchFolder(t), "gateway.yaml");
  for (const [name, content] of Object.entries({ "gateway.yaml": text, ...files }))
    await writeFile(join(dirname(path), name), content);
  const out: string[] = [];
  const problems: string[] = [];
  const log = t.mock.method(console, "log", (line: string) => void out.push(line));
  const error = t.mock.method(console, "error", (line: string) => void problems.push(line));
  try {
    return { path, code: await run(path, ...flags), out, problems };
  } finally {
    log.mock.restore();
    error.mock.restore();
  }
}

describe("validate", () => {
  it("says that a valid file is, and ends with 0", async (t) => {
    const { path, code, out, problems } = await validate(t, "version: 1\nmodels: [acme/a:Q8_0]\n");
    const line = `${path} is valid; no llama-server is here to check its options by`;
    assert.deepEqual({ code, out, problems }, { code: 0, out: [line], problems: [] });
  });

  it("lists problems in the order of their lines", async (t) => {
    const { problems } = await validate(
      t,
      "version: 1\ncontext: { defalt: 5 }\nprunee: true\nmodels: [{ ctxsize: 5 }]\n",
    );
    assert.deepEqual([...new Set(problems.map((line) => line.split(":")[1]))], ["2", "3", "4"]);
  });

  it("lists every problem as FILE:LINE:COLUMN, and ends with 1", async (t) => {
    const { path, code, out, problems } = await validate(
      t,
      "version: 1\nmodels:\n  - acme/a:Q8_0\n  - id: acme/b:Q8_0\n    ctxSise: 5\n    ctxSize: -1\n",
    );
    assert.deepEqual({ code, out }, { code: 1, out: [] });
    assert.deepEqual([...problems].sort(), [
      `${path}:5:5: models[1].ctxSise: unknown key (did you mean ctxSize?)`,
      `${path}:6:14: models[1].ctxSize: must be >= 1`,
    ]);
  });

  it("tells where the YAML is broken", async (t) => {
    const { path, code, problems } = await validate(t, "version: 1\nmodels: [\n");
    assert.equal(code, 1);
    assert.ok(problems[0]?.startsWith(`${path}:3:1: `), problems[0]);
  });

  it("finds files that are not there or of another kind, and a draft that is no model of the document", async (t) => {
    const named = [
      "version: 1",
      "models:",
      "  - id: acme/a:Q8_0",
      "    source: away.gguf",
      "    chatTemplate: ../outside.jinja",
      "    lora: [{ source: fit.gguf }, { source: text.gguf }]",
      "    mmproj: none.gguf",
      "    draft: acme/z:Q8_0",
      "  - { id: 'acme/b:Q8_0', source: fit.gguf, draft: 'acme/A:q8_0' }",
    ];
    const fit = modelBytes(talkingModel("fit"));
    const { path, code, problems } = await validate(t, named.join("\n"), { "fit.gguf": fit, "text.gguf": "text" });
    const folder = dirname(path);
    const below = `name a file in ${folder} or below`;
    assert.equal(code, 1);
    assert.deepEqual(problems, [
      `${path}:4:13: models[0].source: ${folder}/away.gguf is not there: name a .gguf file, relative to the document's folder`,
      `${path}:5:19: models[0].chatTemplate: ../outside.jinja does not exist: ${below}`,
      `${path}:6:44: models[0].lora[1].source: text.gguf is not a GGUF file: ${below}`,
      `${path}:7:13: models[0].mmproj: none.gguf does not exist: ${below}`,
      `${path}:8:12: models[0].draft: acme/z:Q8_0 is not another model of the document: add it to models`,
    ]);
  });

  it("has all of that as JSON, of several files", async (t) => {
    const other = join(await scratchFolder(t), "other.yaml");
    await writeFile(other, "version: 1\n");
    const { path, code, out } = await validate(t, "version: 1\nmodels: [bad]\n", {}, other, "--json");
    assert.equal(code, 1);
    const { valid, engine, files } = JSON.parse(out.join("\n")) as Record<string, unknown> & {
      files: { problems: { line: number; column: number; path: string; message: string }[] }[];
    };
    assert.deepEqual([valid, engine], [false, null]);
    const [first] = files;
    const problems = first?.problems.map(({ message, ...place }) => ({ ...place, hasMessage: message !== "" }));
    assert.deepEqual(
      [{ ...first, problems }, files[1]],
      [
        {
          file: path,
          valid: false,
          problems: [{ line: 2, column: 10, path: "models[0]", hasMessage: true }],
          more: 0,
        },
        { file: other, valid: true, problems: [], more: 0 },
      ],
    );
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
