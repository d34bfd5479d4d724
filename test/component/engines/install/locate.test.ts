// Where an engine is looked for, and in which order.

import assert from "node:assert/strict";
import { chmod, mkdir, mkdtemp, realpath, rename, rm, symlink, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { type TestContext, test } from "node:test";
import { locateEngine, toolBeside } from "../../../../src/engines/install/locate.ts";

const posix = { skip: process.platform === "win32" ? "executable bits and links are POSIX's" : false };

async function scratch(t: TestContext): Promise<string> {
  const dir = await realpath(await mkdtemp(path.join(os.tmpdir(), "gateway-locate-")));
  t.after(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

async function program(file: string): Promise<string> {
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, "#!/bin/sh\n");
  await chmod(file, 0o755);
  return file;
}

async function installation(enginesDir: string, folder: string, installedAt: string, how = "debian"): Promise<string> {
  const home = path.join(enginesDir, folder);
  const file = await program(path.join(home, "bin/llama-server"));
  const binaries = { "llama-server": "bin/llama-server" };
  await writeFile(
    path.join(home, "engine.json"),
    JSON.stringify({ name: "llama", version: folder, how, home, binaries, installedAt }),
  );
  return file;
}

test("the setting comes before PATH, PATH before the state folder; paths are absolute and real", posix, async (t) => {
  const dir = await scratch(t);
  const enginesDir = path.join(dir, "engines");
  const installed = await installation(enginesDir, "llama-1", "2026-01-01T00:00:00Z");
  const real = await program(path.join(dir, "real/llama-server"));
  await mkdir(path.join(dir, "bin"));
  await symlink(real, path.join(dir, "bin/llama-server"));
  const explicit = await program(path.join(dir, "mine"));
  const pathVariable = ["", ".", path.join(dir, "nowhere"), path.join(dir, "bin")].join(path.delimiter);

  const relative = path.relative(process.cwd(), explicit);
  assert.equal(await locateEngine("llama-server", { explicit: relative, pathVariable, enginesDir }), explicit);
  assert.equal(await locateEngine("llama-server", { explicit: undefined, pathVariable, enginesDir }), real);
  assert.equal(await locateEngine("llama-server", { explicit: undefined, pathVariable: "", enginesDir }), installed);
  assert.equal(await locateEngine("whisper-server", { explicit: undefined, pathVariable, enginesDir }), null);
});

test("a setting that is no executable file is an error, even with an engine on PATH", posix, async (t) => {
  const dir = await scratch(t);
  await program(path.join(dir, "bin/llama-server"));
  await writeFile(path.join(dir, "plain"), "");
  for (const explicit of [path.join(dir, "missing"), path.join(dir, "plain"), path.join(dir, "bin")]) {
    await assert.rejects(
      locateEngine("llama-server", { explicit, pathVariable: path.join(dir, "bin"), enginesDir: dir }),
      { code: "engine_missing", message: new RegExp(explicit) },
    );
  }
});

test("the newest complete installation wins; incomplete, unreadable and moved ones are none", posix, async (t) => {
  const dir = await scratch(t);
  const options = { explicit: undefined, pathVariable: "", enginesDir: dir };
  await installation(dir, "llama-1", "2026-01-01T00:00:00Z");
  const newest = await installation(dir, "llama-2", "2026-02-01T00:00:00Z");
  await program(path.join(dir, "llama-3/bin/llama-server"));
  await installation(dir, ".installing-llama-1-aa", "2026-09-01T00:00:00Z");
  await mkdir(path.join(dir, "llama-4"));
  await writeFile(path.join(dir, "llama-4/engine.json"), "{");
  assert.equal(await locateEngine("llama-server", options), newest);

  await rename(path.join(dir, "llama-2"), path.join(dir, "moved"));
  assert.equal(await locateEngine("llama-server", options), path.join(dir, "llama-1/bin/llama-server"));
  await rm(path.join(dir, "llama-1/bin"), { recursive: true });
  assert.equal(await locateEngine("llama-server", options), null);
});

test("one of the Debian way that was moved is none; by a link it works", posix, async (t) => {
  const dir = await scratch(t);
  const enginesDir = path.join(dir, "engines");
  const options = { explicit: undefined, pathVariable: "", enginesDir };
  const file = await installation(enginesDir, "llama-1", "2026-01-01T00:00:00Z");
  const moved = path.join(dir, "moved", "llama-1");
  await mkdir(path.dirname(moved));
  await symlink(path.dirname(path.dirname(file)), moved);
  assert.equal(await locateEngine("llama-server", { ...options, enginesDir: path.dirname(moved) }), file);

  await rm(moved);
  await rename(path.join(enginesDir, "llama-1"), moved);
  const elsewhere = path.dirname(moved);
  assert.equal(await locateEngine("llama-server", { ...options, enginesDir: elsewhere }), null);
});

test("a tool is taken from beside the real path of the server, and from nowhere else", posix, async (t) => {
  const dir = await scratch(t);
  const real = await program(path.join(dir, "real/llama-server"));
  const tool = await program(path.join(dir, "real/llama-bench"));
  await mkdir(path.join(dir, "bin"));
  await symlink(real, path.join(dir, "bin/llama-server"));
  await program(path.join(dir, "bin/llama-quantize"));
  assert.equal(await toolBeside(path.join(dir, "bin/llama-server"), "llama-bench"), tool);
  assert.equal(await toolBeside(path.join(dir, "bin/llama-server"), "llama-quantize"), null);
  assert.equal(await toolBeside(path.join(dir, "gone"), "llama-bench"), null);
});
