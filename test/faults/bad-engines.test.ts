// Engines that cannot be used, each in its own way: what is the matter is told, it is tried again ever more slowly, costs next
// to nothing meanwhile, and works as soon as the file is mended, with nobody asking.
import assert from "node:assert/strict";
import { chmod, rename, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { findLeftovers } from "../../src/engines/process/leftovers.ts";
import { startCommand } from "../support/command.ts";
import { llamaServer } from "../support/engine.ts";
import { type GatewayFolders, makeFolders } from "../support/gateway.ts";
import { processorMs } from "../support/processes.ts";
import { until } from "../support/scratch.ts";

interface BadEngine {
  readonly what: string;
  readonly reason: string;
  /** In the condition's message. */
  readonly says: RegExp;
  write(path: string): Promise<unknown>;
}

/** For so long it is observed. The first retries come after 1 and 2 s. */
const quietMs = 3_000;

const script =
  (text: string) =>
  async (path: string): Promise<void> => {
    await writeFile(path, `#!/bin/sh\n${text}\n`);
    await chmod(path, 0o755);
  };

const engines: readonly BadEngine[] = [
  {
    what: "ends at once with its last words",
    reason: "EngineFailed",
    says: /ended while starting.*no CUDA-capable device/s,
    write: script("echo 'ggml_cuda_init: no CUDA-capable device is detected' >&2; exit 1"),
  },
  {
    what: "ends after two seconds",
    reason: "EngineFailed",
    says: /ended while starting.*out of memory/s,
    write: script("[ \"$1\" = --help ] && exit; sleep 2; echo 'out of memory'; exit 3"),
  },
  {
    what: "never listens",
    reason: "EngineFailed",
    says: /not ready within 3000 ms.*thinking/s,
    write: script('[ "$1" = --help ] && exit; echo thinking; exec sleep 600'),
  },
  {
    what: "never stops writing",
    reason: "EngineFailed",
    says: /not ready within 3000 ms.*failed to spawn/s,
    write: script('[ "$1" = --help ] && exit; while :; do echo "failed to spawn server instance"; sleep 0.001; done'),
  },
  {
    what: "may not be run",
    reason: "EngineMissing",
    says: /no executable file/,
    write: (path) => writeFile(path, "#!/bin/sh\n", { mode: 0o644 }),
  },
  {
    what: "is a folder's name",
    reason: "EngineMissing",
    says: /no executable file/,
    write: (path) => symlink("/", path),
  },
];

// Each has a gateway of its own and waits most of the time.
describe("an engine", { concurrency: 4 }, () => {
  for (const engine of engines) test(`that ${engine.what}`, (t) => replaced(t, engine));
});

async function replaced(t: TestContext, engine: BadEngine): Promise<void> {
  const folders: GatewayFolders = await makeFolders(t);
  await folders.writeConfig("version: 1\n");
  const path = join(folders.root, "llama-server");
  await engine.write(path);
  const serve = await startCommand(
    t,
    folders,
    ["serve", "--resync", "1", "--start-timeout", "3", "--stop-grace", "1"],
    {
      LLAMA_SERVER: path,
    },
  );
  let log = "";
  serve.process.stderr?.on("data", (text: Buffer) => void (log += text.toString()));
  const [, url = ""] = await serve.output(/listens on (\S+);/);
  const routerReady = async (): Promise<{ status: string; reason: string; message: string }> => {
    const { conditions } = (await (await fetch(`${url}/status`)).json()) as {
      conditions: { type: string; status: string; reason: string; message: string }[];
    };
    return conditions.find(({ type }) => type === "RouterReady") ?? { status: "", reason: "", message: "" };
  };
  const told = await until("told", async () => {
    const found = await routerReady();
    return found.reason === engine.reason && engine.says.test(found.message) && found;
  });
  assert.equal(told.status, "False");
  assert.equal((await fetch(`${url}/readyz`)).status, 503);

  const pid = serve.process.pid ?? 0;
  const [before, linesBefore] = [await processorMs(pid), log.split("\n").length];
  await new Promise((resolve) => setTimeout(resolve, quietMs));
  const used = (await processorMs(pid)) - before;
  const lines = log.split("\n").length - linesBefore;
  t.diagnostic(`${used} ms of processor time and ${lines} lines in ${quietMs} ms`);
  assert.ok(used < 0.3 * quietMs, `${used} ms of processor time in ${quietMs} ms`);
  assert.ok(lines < 25, `${lines} lines: ${log.slice(-2000)}`);

  // As an upgrade does it: beside it, then in its place.
  await symlink(await llamaServer(), `${path}.new`);
  await rename(`${path}.new`, path);
  await until("it works", async () => (await routerReady()).status === "True", 20_000);
  serve.process.kill("SIGTERM");
  assert.equal((await serve.exited).code, 0);
  assert.deepEqual(await findLeftovers(folders.stateDir), []);
}
