// The commands that messages name work as they stand, pasted into a shell in the folder where the program was started.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmod, mkdir, readFile, symlink } from "node:fs/promises";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { promisify } from "node:util";
import { packageRoot } from "../../../src/settings/settings.ts";
import { scratchFolder } from "../../support/scratch.ts";

const run = promisify(execFile);
const cli = join(packageRoot, "dist", "program", "cli.js");

/** Runs `program` without keys, and pastes the command of its message. */
async function followAdvice(
  t: TestContext,
  program: (root: string) => Promise<readonly [string, ...string[]]>,
  workingDir: string | null,
): Promise<string> {
  const root = await scratchFolder(t);
  const stateDir = join(root, "the state's folder");
  const [file, ...args] = await program(root);
  const cwd = workingDir ?? root;
  const env = { PATH: `${join(root, "bin")}:${process.env["PATH"] ?? ""}`, HOME: root };
  const { stdout } = await run(file, [...args, "key", "list", "--state", stateDir], { cwd, env });
  const advised = /`(.+)` creates one/.exec(stdout)?.[1] ?? "";
  await run("sh", ["-c", advised], { cwd, env });
  assert.match(await readFile(join(stateDir, "license-keys.json"), "utf8"), /"name": ?"NAME"/);
  return advised;
}

describe("a command that a message names", () => {
  it("works in a checkout, and from elsewhere", async (t) => {
    const program = async (): Promise<[string, string]> => [process.execPath, cli];
    assert.match(await followAdvice(t, program, packageRoot), /^node dist\/program\/cli\.js key create NAME --state '/);
    assert.match(await followAdvice(t, program, null), /^node .*cli\.js key create NAME --state 'the state'/);
  });

  it("works where the package is installed", async (t) => {
    const linked = async (root: string): Promise<[string]> => {
      await mkdir(join(root, "bin"));
      // As npm does.
      await chmod(cli, 0o755);
      await symlink(cli, join(root, "bin", "model-gateway"));
      return [join(root, "bin", "model-gateway")];
    };
    assert.match(await followAdvice(t, linked, null), /^model-gateway key create NAME --state '/);
  });
});
