// How soon an edit is in force: a saved file and a PATCH through the gateway, a rewritten preset and a reload on the engine's own
// router. One small model, not loaded. Listed: the list of models has the new context size. Answered: a chat after that is answered.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../src/engines/process/free-port.ts";
import { commandLine } from "../support/command.ts";
import { installedServer } from "../support/engine.ts";
import { cacheTalker } from "../support/folders.ts";
import { until } from "../support/scratch.ts";
import { inTurn, quantile } from "./goals.ts";

const rounds = 21;
const root = await mkdtemp(join(tmpdir(), "gateway-edit-"));
const cacheDir = join(root, "hub");
const id = await cacheTalker({ cacheDir }, "acme/bench");
const environment = { PATH: process.env["PATH"] ?? "", HF_HUB_CACHE: cacheDir, LLAMA_SERVER: await installedServer() };
const undo: (() => Promise<unknown>)[] = [() => rm(root, { recursive: true, force: true })];

/** The router closes connections that it says it keeps. */
const noReuse = { connection: "close" };

interface Server {
  /** The list of models, as text. */
  list(): Promise<string>;
  post(path: string, body: object): Promise<Response>;
}

async function started(command: readonly [string, ...string[]], api: string): Promise<Server> {
  const [program, ...args] = command;
  const child = spawn(program, args, { env: environment, stdio: "ignore" });
  undo.unshift(() => {
    child.kill("SIGTERM");
    return once(child, "exit");
  });
  const server: Server = {
    list: () => fetch(`${api}/models`, { headers: noReuse }).then((answer) => answer.text()),
    post: (path, body) =>
      fetch(`${api}${path}`, {
        method: "POST",
        headers: { ...noReuse, "content-type": "application/json" },
        body: JSON.stringify({ model: id, ...body }),
      }),
  };
  const isListed = (text: string): boolean => text.includes(id);
  await until("the model is listed", () => server.list().then(isListed, () => false), 30_000);
  return server;
}

async function listed(server: Server, pattern: RegExp): Promise<void> {
  while (!pattern.test(await server.list())) await new Promise((resolve) => setTimeout(resolve, 2));
}

const chat = { messages: [{ role: "user", content: "hi" }], max_tokens: 1 };

interface Row {
  readonly name: string;
  readonly server: Server;
  readonly change: (size: number) => Promise<unknown>;
  /** Of its first round, in tokens: what a size takes of memory is known once it was asked for. */
  readonly firstSize: number;
  readonly times: { readonly listed: number; readonly answered: number }[];
}

async function measure({ name, server, change, firstSize, times }: Row): Promise<void> {
  const size = firstSize + 256 * times.length;
  const began = performance.now();
  await change(size);
  await listed(server, new RegExp(`"${size}"|: ?${size}\\b`));
  const listedMs = performance.now() - began;
  const { status } = await server.post("/chat/completions", chat);
  if (status !== 200) throw new Error(`${name}: the chat was answered with ${status}`);
  times.push({ listed: listedMs, answered: performance.now() - began });
  await server.post("/models/unload", {});
  await listed(server, /"unloaded"/);
  // What follows an edit, such as the history, is not to disturb the next row.
  await new Promise((resolve) => setTimeout(resolve, 500));
}

function report({ name, times }: Row, [router]: readonly Row[]): string {
  const shown = (["listed", "answered"] as const).map((which) => {
    const all = times.map((time) => time[which]);
    return `${quantile(all, 0.5).toFixed(0)} (${Math.min(...all).toFixed(0)}–${Math.max(...all).toFixed(0)})`;
  });
  const ratio = answeredMs(times) / answeredMs(router?.times ?? []);
  return `| ${name} | ${shown.join(" | ")} | ${ratio.toFixed(2)} |`;
}

function answeredMs(times: Row["times"]): number {
  return quantile(
    times.map(({ answered }) => answered),
    0.5,
  );
}

try {
  const preset = join(root, "preset.ini");
  const writePreset = (size: number): Promise<void> =>
    writeFile(preset, `[*]\noffline = true\n[${id}]\nhf-repo = ${id}\nctx-size = ${size}\n`);
  await writePreset(512);
  const routerPort = await freePort();
  const router = `http://127.0.0.1:${routerPort}`;
  const routerArgs = ["--host", "127.0.0.1", "--port", String(routerPort), "--models-preset", preset, "--no-webui"];
  const alone = await started([environment.LLAMA_SERVER, ...routerArgs], router);

  const state = join(root, "state");
  const file = join(state, "gateway.yaml");
  const save = (size: number): Promise<void> =>
    writeFile(file, `version: 1\nmodels: [{ id: "${id}", ctxSize: ${size} }]\n`);
  await mkdir(state);
  await save(512);
  const port = await freePort();
  const gateway = `http://127.0.0.1:${port}`;
  const inForce = await started(commandLine(["serve", "--port", String(port), "--state", state]), `${gateway}/beta/v1`);
  const rows: Row[] = [
    {
      name: "router alone: preset written, reload",
      server: alone,
      firstSize: 1024,
      times: [],
      change: async (size) => {
        await writePreset(size);
        await fetch(`${router}/models?reload=1`, { headers: noReuse });
      },
    },
    { name: "gateway: file saved", server: inForce, firstSize: 1024, times: [], change: save },
    {
      name: "gateway: `PATCH`",
      server: inForce,
      firstSize: 1152,
      times: [],
      change: (size) =>
        fetch(`${gateway}/api/desired`, {
          method: "PATCH",
          headers: { ...noReuse, "content-type": "application/merge-patch+json" },
          body: JSON.stringify({ models: { [id]: { ctxSize: size } } }),
        }),
    },
  ];
  for (let round = 0; round < rounds; round++) for (const row of inTurn(rows, round)) await measure(row);
  console.log("| ms, median (range) | listed | answered | of the router alone |\n|---|---:|---:|---:|");
  for (const row of rows) console.log(report(row, rows));
} finally {
  for (const step of undo) await step();
}
