// The two sides of the comparison: the engine's own router with a loop that starts it again, and the gateway. Both have the same
// models, two of four loaded at a time, and are told and hurt the same way.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../src/engines/process/free-port.ts";
import type { Target } from "../support/chaos/ask.ts";
import { bookYaml } from "../support/chaos/book.ts";
import { chaosBytes, chaosFile, idOf, repoOf, residents } from "../support/chaos/models.ts";
import { createWorld, processOf } from "../support/chaos/world.ts";
import { cleanUp, type Ending } from "../support/clean-up.ts";
import { installedServer } from "../support/engine.ts";
import { cacheModel } from "../support/folders.ts";
import { childrenOf } from "../support/processes.ts";
import { until } from "../support/scratch.ts";

export interface Side {
  readonly name: string;
  target(): Promise<Target>;
  afterRefusal(target: Target): Promise<void>;
  /** Resolves when the new size is in force, or as soon as one can know. `way`: how the bare router is told. */
  setContext(model: string, ctx: number, way: "reload" | "restart"): Promise<void>;
  /** The process of a model, or the router's; null while there is none. */
  processOf(model: string | null): Promise<number | null>;
}

const placesForModels = 2;
const firstContext = 4096;

export async function gatewaySide(t: Ending): Promise<Side> {
  const world = await createWorld(t, {
    models: residents,
    environment: { GATEWAY_MODELS_MAX: String(placesForModels), GATEWAY_LOG_LEVEL: "error" },
  });
  const models = Object.fromEntries(residents.map((name) => [idOf(name), { preset: { threads: 1 } }]));
  await world.folders.writeConfig(bookYaml({ context: { default: firstContext }, models }));
  await world.start();
  await until("converged", async () => (await world.call("GET", "/api/plan")).body["converged"] === true, 60_000);
  return {
    name: "gateway",
    target: world.target,
    afterRefusal: reachable,
    setContext: async (model, ctx) => {
      const { status, body } = await world.call("POST", "/api/set-ctx-size", { model: idOf(model), ctx_size: ctx });
      if (status !== 200) throw new Error(`set-ctx-size: ${status} ${JSON.stringify(body)}`);
    },
    processOf: async (model) => (await processOf(world, model && idOf(model)))?.pid ?? null,
  };
}

export async function bareSide(t: Ending): Promise<Side> {
  const folder = await mkdtemp(join(tmpdir(), "drops-"));
  cleanUp(t, () => rm(folder, { recursive: true, force: true }));
  const cacheDir = join(folder, "hub");
  const preset = join(folder, "preset.ini");
  for (const name of residents) await cacheModel({ cacheDir }, repoOf(name), `${name}-${chaosFile}`, chaosBytes(name));
  const contexts = new Map<string, number>(residents.map((name) => [name, firstContext]));
  await writePreset();
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  const target: Target = { origin, prefixes: { compat: "/v1", native: "/none" }, headers: {} };
  const router = await runAgainAndAgain(
    t,
    await installedServer(),
    [
      `--host 127.0.0.1 --port ${port} --models-max ${placesForModels} --no-webui`.split(" "),
      ["--models-preset", preset],
    ].flat(),
    { HF_HUB_CACHE: cacheDir },
  );
  await reachable(target);

  async function writePreset(): Promise<void> {
    const sections = [...contexts].map(
      ([name, ctx]) => `[${idOf(name)}]\nhf-repo = ${idOf(name)}\nctx-size = ${ctx}\n`,
    );
    await writeFile(preset, `[*]\noffline = true\nthreads = 1\n${sections.join("")}`);
  }

  return {
    name: "bare router",
    target: () => Promise.resolve(target),
    afterRefusal: reachable,
    setContext: async (model, ctx, way) => {
      contexts.set(model, ctx);
      await writePreset();
      if (way === "reload") await fetch(`${origin}/models?reload=1`);
      else await router.restart();
    },
    processOf: async (model) => {
      if (model === null) return router.pid();
      for (const pid of await childrenOf(router.pid() ?? 0).catch(() => [])) {
        const args = (await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")).split("\0");
        if (args.includes(idOf(model))) return pid;
      }
      return null;
    },
  };
}

interface Rerun {
  pid(): number | null;
  /** In order, as far as it goes: TERM, and KILL after ten seconds. */
  restart(): Promise<void>;
}

/** As a service of the system's would, without a pause. */
async function runAgainAndAgain(
  t: Ending,
  path: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<Rerun> {
  let over = false;
  const start = () => spawn(path, args, { stdio: "ignore", env: { PATH: process.env["PATH"] ?? "", ...environment } });
  let child = start();
  const loop = (async (): Promise<void> => {
    while (!over) {
      await once(child, "exit");
      if (!over) child = start();
    }
  })();
  async function end(): Promise<void> {
    const ending = child;
    const exited = once(ending, "exit");
    ending.kill("SIGTERM");
    const kill = setTimeout(() => ending.kill("SIGKILL"), 10_000);
    await exited;
    clearTimeout(kill);
  }
  cleanUp(t, async () => {
    over = true;
    await end();
    await loop;
  });
  return { pid: () => child.pid ?? null, restart: end };
}

/** Resolves once something listens there. */
async function reachable({ origin }: Target): Promise<void> {
  const { port } = new URL(origin);
  const tries = (): Promise<boolean> =>
    new Promise((resolve) => {
      const socket = connect(Number(port), "127.0.0.1");
      socket.once("connect", () => resolve(true));
      socket.once("error", () => resolve(false));
      socket.once("close", () => resolve(false));
      socket.once("connect", () => socket.destroy());
    });
  await until(`${origin} listens`, tries, 60_000);
}
