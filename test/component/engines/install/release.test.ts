// The release way against a loopback server that speaks the listing's JSON, with real archives and a real child process.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import os from "node:os";
import path from "node:path";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import type { InstallProgress } from "../../../../src/engines/install/build.ts";
import { installEngine } from "../../../../src/engines/install/install.ts";
import { locateEngine, toolBeside } from "../../../../src/engines/install/locate.ts";
import { runTool } from "../../../../src/engines/install/run.ts";
import { packageRoot } from "../../../../src/settings/settings.ts";

const run = promisify(execFile);
const posix = { skip: process.platform === "win32" ? "the fake engine is a shell script" : false };
const system = process.platform === "darwin" ? "macos" : "ubuntu";
const assetName = (tag: string) => `llama-${tag}-bin-${system}-${process.arch}.tar.gz`;

interface World {
  readonly enginesDir: string;
  readonly environment: Record<string, string | undefined>;
  readonly releaseUrl: string;
  /** What the listing offers next: a tag and the archive's bytes, announced with this digest, with one tool if it is named. */
  offer(tag: string, script: string, options?: { readonly digest?: string; readonly tool?: string }): Promise<void>;
  /** Sends half of the archive only, and tells when it did. */
  stall(): Promise<void>;
  readonly server: Server;
}

async function createWorld(t: TestContext): Promise<World> {
  const dir = await mkdtemp(path.join(os.tmpdir(), "gateway-release-"));
  let listing: unknown = [];
  let archive = Buffer.alloc(0);
  let stalled: (() => void) | undefined;
  const server = createServer((request, response) => {
    if (request.url === "/releases")
      response.setHeader("content-type", "application/json").end(JSON.stringify(listing));
    else if (request.url === "/moved") response.writeHead(302, { location: "/archive" }).end();
    else if (stalled === undefined) response.end(archive);
    else {
      response.setHeader("content-length", archive.length);
      response.write(archive.subarray(0, archive.length / 2), stalled);
      stalled = undefined;
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(async () => {
    server.closeAllConnections();
    server.close();
    await rm(dir, { recursive: true, force: true });
  });
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    enginesDir: path.join(dir, "engines"),
    environment: { PATH: process.env["PATH"], GATEWAY_ENGINE_SOURCE: "release" },
    releaseUrl: `${origin}/releases`,
    server,
    async offer(tag, script, { digest, tool } = {}) {
      const bin = path.join(dir, tag, `llama-${tag}`);
      await mkdir(bin, { recursive: true });
      for (const name of ["llama-server", "rpc-server", ...(tool === undefined ? [] : [tool])])
        await writeFile(path.join(bin, name), script, { mode: 0o755 });
      await run("tar", ["-czf", path.join(dir, `${tag}.tgz`), "-C", path.join(dir, tag), `llama-${tag}`]);
      archive = await readFile(path.join(dir, `${tag}.tgz`));
      const sha256 = digest ?? createHash("sha256").update(archive).digest("hex");
      const url = `${origin}/moved`;
      const asset = {
        name: assetName(tag),
        browser_download_url: url,
        size: archive.length,
        digest: `sha256:${sha256}`,
      };
      listing = [{ tag_name: tag, assets: [asset] }];
    },
    stall() {
      return new Promise((resolve) => {
        stalled = () => resolve();
      });
    },
  };
}

function install(
  world: World,
  onProgress: (p: InstallProgress) => void = () => {},
  signal = new AbortController().signal,
) {
  return installEngine("llama", { ...world, signal, onProgress });
}

function locate(world: World, binary: "llama-server" | "ggml-rpc-server" = "llama-server") {
  return locateEngine(binary, { explicit: undefined, pathVariable: "", enginesDir: world.enginesDir });
}

const script = (words: string) => `#!/bin/sh\necho ${words}\n`;

test("a release is fetched through its redirect, checked, unpacked and found; again is no work", posix, async (t) => {
  const world = await createWorld(t);
  await world.offer("b1", script("version one"));
  const progress: InstallProgress[] = [];
  const installed = await install(world, (p) => progress.push(p));
  assert.equal(installed.version, "b1");
  assert.equal(installed.how, "release");

  const found = await locate(world);
  assert.equal((await run(found ?? "", ["--version"])).stdout, "version one\n");
  assert.equal(path.basename((await locate(world, "ggml-rpc-server")) ?? ""), "rpc-server");
  assert.deepEqual(await readdir(world.enginesDir), [path.basename(installed.dir)]);
  assert.ok(progress.some((p) => p.phase === "resolve" && p.detail.includes(assetName("b1"))));
  const download = progress.filter((p) => p.phase === "download").at(-1);
  assert.ok(download !== undefined && download.total > 0 && download.done === download.total);

  const before = await readFile(path.join(installed.dir, "engine.json"), "utf8");
  const again: InstallProgress[] = [];
  assert.deepEqual(await install(world, (p) => again.push(p)), installed);
  assert.equal(again.filter((p) => p.phase === "download").length, 0);
  assert.equal(await readFile(path.join(installed.dir, "engine.json"), "utf8"), before);
});

test("an update is found at once, and the version before stays for who runs it", posix, async (t) => {
  const world = await createWorld(t);
  for (const tag of ["b1", "b2", "b3"]) {
    await world.offer(tag, script(tag));
    const { dir } = await install(world);
    assert.ok((await locate(world))?.startsWith(dir));
  }
  assert.deepEqual((await readdir(world.enginesDir)).sort(), ["llama-b2-release", "llama-b3-release"]);
});

test("the tools of an archive are found beside its server; an archive without them is no failure", posix, async (t) => {
  const world = await createWorld(t);
  await world.offer("b1", script("one"));
  await install(world);
  assert.equal(await toolBeside((await locate(world)) ?? "", "llama-fit-params"), null);

  await world.offer("b2", script("two"), { tool: "llama-fit-params" });
  const { dir } = await install(world);
  const server = (await locate(world)) ?? "";
  const tool = path.join(path.dirname(server), "llama-fit-params");
  assert.equal(await toolBeside(server, "llama-fit-params"), tool);
  assert.equal(await toolBeside(server, "llama-bench"), null);
  const manifest = JSON.parse(await readFile(path.join(dir, "engine.json"), "utf8")) as {
    readonly binaries: Readonly<Record<string, string>>;
  };
  assert.deepEqual(Object.keys(manifest.binaries), ["llama-server", "ggml-rpc-server", "llama-fit-params"]);
  assert.equal(path.join(dir, manifest.binaries["llama-fit-params"] ?? ""), tool);
});

test("an archive with another digest than announced is not unpacked", posix, async (t) => {
  const world = await createWorld(t);
  await world.offer("b1", script("never"), { digest: "0".repeat(64) });
  await assert.rejects(install(world), { code: "checksum_mismatch", message: /SHA-256/ });
  assert.deepEqual(await readdir(world.enginesDir), []);
  assert.equal(await locate(world), null);
});

test(
  "an archive that does not run here is refused with its last words and the command that helps",
  posix,
  async (t) => {
    const world = await createWorld(t);
    await world.offer("b1", "#!/bin/sh\necho version GLIBC_9 not found >&2\nexit 1\n");
    await assert.rejects(install(world), { code: "engine_missing", message: /GLIBC_9 not found.*(brew|nix|winget) / });
    assert.deepEqual(await readdir(world.enginesDir), []);
  },
);

test("a listing that nobody answers fails at once and names the command", posix, async (t) => {
  const world = await createWorld(t);
  world.server.close();
  await once(world.server, "close");
  await assert.rejects(install(world), { code: "engine_missing", message: /ECONNREFUSED.*(brew|nix|winget) / });
});

test("cancelling in the middle of the download leaves nothing", posix, async (t) => {
  const world = await createWorld(t);
  await world.offer("b1", script("one"));
  const half = world.stall();
  const controller = new AbortController();
  const outcome = assert.rejects(
    install(world, () => {}, controller.signal),
    { code: "cancelled" },
  );
  await half;
  controller.abort();
  await outcome;
  assert.deepEqual(await readdir(world.enginesDir), []);
});

test("a killed installation is not found, and the next one removes what it left", posix, async (t) => {
  const world = await createWorld(t);
  await world.offer("b1", script("one"));
  const half = world.stall();
  const module = new URL("../../../../src/engines/install/install.js", import.meta.url).href;
  const code = `const { installEngine } = await import(${JSON.stringify(module)});
    await installEngine("llama", { ...JSON.parse(process.argv[1]), signal: new AbortController().signal, onProgress() {} });`;
  const options = JSON.stringify({
    enginesDir: world.enginesDir,
    environment: world.environment,
    releaseUrl: world.releaseUrl,
  });
  const child = spawn(process.execPath, ["--input-type=module", "-e", code, options], { stdio: "inherit" });
  t.after(() => child.kill("SIGKILL"));
  const exited = once(child, "exit");
  await half;
  child.kill("SIGKILL");
  await exited;

  assert.deepEqual((await readdir(world.enginesDir)).toSorted(), [".installing-llama", ".llama.lock"]);
  assert.equal(await locate(world), null);

  const { dir } = await install(world);
  assert.deepEqual(await readdir(world.enginesDir), [path.basename(dir)]);
});

test("two installations at once leave one whole engine", posix, async (t) => {
  const world = await createWorld(t);
  await world.offer("b1", script("one"));
  const outcomes = await Promise.all([install(world), install(world)]);
  assert.deepEqual(outcomes[0], outcomes[1]);
  assert.deepEqual(await readdir(world.enginesDir), [path.basename(outcomes[0].dir)]);
  assert.equal((await run((await locate(world)) ?? "", [])).stdout, "one\n");
});

test("an installation that lost its executable is repaired by the next one", posix, async (t) => {
  const world = await createWorld(t);
  await world.offer("b1", script("one"));
  await install(world);
  await rm((await locate(world)) ?? "");
  assert.equal(await locate(world), null);
  const { dir } = await install(world);
  assert.ok((await locate(world))?.startsWith(dir));
  assert.deepEqual(await readdir(world.enginesDir), [path.basename(dir)]);
});

test("what lies damaged under its name makes way, be it a link or a file", posix, async (t) => {
  const world = await createWorld(t);
  await world.offer("b1", script("one"));
  const { dir } = await install(world);
  for (const make of [() => symlink(os.tmpdir(), dir), () => symlink("gone", dir), () => writeFile(dir, "")]) {
    await rm(dir, { recursive: true });
    await make();
    assert.equal((await install(world)).dir, dir);
    assert.equal((await run((await locate(world)) ?? "", [])).stdout, "one\n");
    assert.deepEqual(await readdir(world.enginesDir), [path.basename(dir)]);
  }
});

test("an unknown source is an error that names the choices", posix, async (t) => {
  const world = await createWorld(t);
  const environment = { ...world.environment, GATEWAY_ENGINE_SOURCE: "elsewhere" };
  await assert.rejects(install({ ...world, environment }), { code: "invalid_request", message: /debian or release/ });
});

test("cancelling ends a tool with everything it started", posix, async () => {
  const controller = new AbortController();
  // The grandchild holds the pipes: the promise settles only once it is gone too.
  const tool = runTool("sh", ["-c", "sleep 1000 & echo ready; wait"], {
    environment: { PATH: process.env["PATH"] },
    signal: controller.signal,
    onOutput: () => controller.abort(),
  });
  await assert.rejects(tool, { code: "cancelled" });
});

test(
  "a tool sees none of the gateway's secrets, and its failure shows its words without credentials",
  posix,
  async () => {
    const environment = { PATH: process.env["PATH"], HF_TOKEN: "hf_secret", https_proxy: "http://proxy.test" };
    const tool = runTool("sh", ["-c", 'echo "t=$HF_TOKEN p=$https_proxy http://me:word@host/x" >&2; exit 3'], {
      environment,
      signal: new AbortController().signal,
    });
    await assert.rejects(tool, {
      code: "engine_failed",
      message: "sh failed: it exited with code 3: t= p=http://proxy.test http://host/x",
    });
  },
);

test("the program as it is built asks for the releases", posix, async () => {
  const stateDir = await mkdtemp(path.join(os.tmpdir(), "gateway-release-"));
  try {
    // Nothing listens there.
    const environment = {
      ...process.env,
      GATEWAY_ENGINE_SOURCE: "release",
      HTTPS_PROXY: "http://127.0.0.1:1",
      NO_PROXY: "",
    };
    const cli = path.join(packageRoot, "dist", "program", "cli.js");
    const install = run(process.execPath, [cli, "engine", "install", "llama", "--state", stateDir], {
      env: environment,
    });
    await assert.rejects(install, /the releases on api\.github\.com cannot be listed: ECONNREFUSED/);
  } finally {
    await rm(stateDir, { recursive: true });
  }
});
