// The Debian way for real: Debian's signed packages from the system's own mirror, run from where they were unpacked.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, readdir, realpath, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import os from "node:os";
import path from "node:path";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import type { InstallProgress } from "../../../../src/engines/install/build.ts";
import { installEngine } from "../../../../src/engines/install/install.ts";
import { locateEngine, toolBeside } from "../../../../src/engines/install/locate.ts";

const run = promisify(execFile);
const release = existsSync("/etc/os-release") ? readFileSync("/etc/os-release", "utf8") : "";
const onDebian = { skip: /^ID=debian$/m.test(release) ? false : "needs Debian's apt sources" };
const environment = { ...process.env, GATEWAY_ENGINE_SOURCE: "debian" };

async function scratch(t: TestContext): Promise<string> {
  // A space and a colon: apt's options, library paths and rpaths each take one of them for a separator.
  const dir = await realpath(await mkdtemp(path.join(os.tmpdir(), "gateway debian:")));
  t.after(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

test("without a release, llama is installed from Debian's packages and runs; again is no work", onDebian, async (t) => {
  const enginesDir = await scratch(t);
  const progress: InstallProgress[] = [];
  const refusing = createServer((_request, response) => response.writeHead(503).end()).listen(0, "127.0.0.1");
  await once(refusing, "listening");
  t.after(() => refusing.close());
  const options = {
    enginesDir,
    environment: { ...environment, GATEWAY_ENGINE_SOURCE: undefined },
    releaseUrl: `http://127.0.0.1:${(refusing.address() as AddressInfo).port}/releases`,
    signal: new AbortController().signal,
    onProgress: (p: InstallProgress) => progress.push(p),
  };
  const installed = await installEngine("llama", options);
  assert.equal(installed.how, "debian");
  assert.deepEqual(await readdir(enginesDir), [path.basename(installed.dir)]);

  const server = await locateEngine("llama-server", { explicit: undefined, pathVariable: "", enginesDir });
  assert.ok(server?.startsWith(installed.dir) === true);
  const { stdout, stderr } = await run(server ?? "", ["--version"], { cwd: "/" });
  assert.ok(`${stdout}${stderr}`.includes(installed.version.split("+")[0] ?? ""), `${stdout}${stderr}`);

  const worker = await locateEngine("ggml-rpc-server", { explicit: undefined, pathVariable: "", enginesDir });
  const help = await run(worker ?? "", ["--help"], { cwd: "/" });
  // Libraries that are found and backends that are not is what a wrong relocation looks like: it ends only later, at a load.
  for (const backend of ["CPU", "RPC"]) {
    assert.ok(`${help.stdout}${help.stderr}`.includes(`loaded ${backend} backend from ${path.dirname(worker ?? "")}`));
  }

  const fits = await toolBeside(server ?? "", "llama-fit-params");
  assert.equal(fits, await locateEngine("llama-fit-params", { explicit: undefined, pathVariable: "", enginesDir }));
  assert.match((await run(fits ?? "", ["--help"], { cwd: "/" })).stdout, /--fit-print/);
  for (const tool of ["llama-bench", "llama-quantize"] as const)
    assert.equal(path.basename((await toolBeside(server ?? "", tool)) ?? ""), tool);

  assert.ok(progress.some((p) => p.detail.includes("cannot be listed: it responded 503")));
  const phases = [...new Set(progress.map((p) => p.phase))];
  assert.deepEqual(phases, ["resolve", "download", "unpack", "check"]);
  const download = progress.filter((p) => p.phase === "download").at(-1);
  assert.ok(download !== undefined && download.total > 1e6 && download.done === download.total);

  progress.length = 0;
  assert.deepEqual(await installEngine("llama", options), installed);
  assert.equal(progress.filter((p) => p.phase === "download").length, 0);
});

test("cancelling while packages are unpacked leaves nothing", onDebian, async (t) => {
  const enginesDir = await scratch(t);
  const controller = new AbortController();
  const installing = installEngine("llama", {
    enginesDir,
    environment,
    signal: controller.signal,
    onProgress: (p) => p.phase === "unpack" && controller.abort(),
  });
  await assert.rejects(installing, { code: "cancelled" });
  assert.deepEqual(await readdir(enginesDir), []);
});
