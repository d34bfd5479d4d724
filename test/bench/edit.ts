// How soon an edit is in force: a saved file and a PATCH through the gateway, a rewritten preset and a reload on the engine's own
// router. Timed until a chat is answered by a process with the new context size; the model is not loaded before. After a PATCH and a
// reload the chat follows at once, as they hold for it; a saved file is in force when the list of models has it. Argument: rounds (21).
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../src/engines/process/free-port.ts";
import { commandLine } from "../support/command.ts";
import { installedServer } from "../support/engine.ts";
import { cacheModel } from "../support/folders.ts";
import { modelBytes, talkingModel } from "../support/models.ts";
import { until } from "../support/scratch.ts";
import { inTurn, judge, quantile } from "./goals.ts";

const [rounds = 21] = process.argv.slice(3).map(Number);
/** By tokens of the vocabulary: the smallest that people use have 32,000; the models of the tests have some hundred. */
const vocabularies = [32_000, 500];
const root = await mkdtemp(join(tmpdir(), "gateway-edit-"));
const cacheDir = join(root, "hub");
const environment = { PATH: process.env["PATH"] ?? "", HF_HUB_CACHE: cacheDir, LLAMA_SERVER: await installedServer() };
const undo: (() => Promise<unknown>)[] = [() => rm(root, { recursive: true, force: true })];

/** The router closes connections that it says it keeps. */
const noReuse = { connection: "close" };

interface Server {
  /** What the list of models has of one. */
  entry(id: string): Promise<object | undefined>;
  post(path: string, body: object): Promise<Response>;
}

async function started(command: readonly [string, ...string[]], api: string, id: string): Promise<Server> {
  const [program, ...args] = command;
  const child = spawn(program, args, { env: environment, stdio: "ignore" });
  undo.unshift(() => {
    child.kill("SIGTERM");
    return once(child, "exit");
  });
  const server: Server = {
    entry: async (model) => {
      const { data } = (await (await fetch(`${api}/models`, { headers: noReuse })).json()) as {
        data: { id: string }[];
      };
      return data.find((each) => each.id === model);
    },
    post: (path, body) =>
      fetch(`${api}${path}`, {
        method: "POST",
        headers: { ...noReuse, "content-type": "application/json" },
        body: JSON.stringify(body),
      }),
  };
  const isListed = (): Promise<boolean> => server.entry(id).then((entry) => entry !== undefined);
  await until("the model is listed", () => isListed().catch(() => false), 30_000);
  return server;
}

async function listed(server: Server, id: string, pattern: RegExp): Promise<void> {
  while (!pattern.test(JSON.stringify(await server.entry(id)))) await new Promise((resolve) => setTimeout(resolve, 2));
}

/** In the list: the router has it as an argument, the gateway as a number. */
const asSize = (size: number): RegExp => new RegExp(`"${size}"|:${size}\\b`);

interface Row {
  readonly name: string;
  readonly vocabulary: number;
  readonly id: string;
  readonly server: Server;
  readonly change: (size: number) => Promise<unknown>;
  /** Of its first round, in tokens: what a size takes of memory is known once it was asked for. */
  readonly firstSize: number;
  /** Of the time of the router alone. */
  readonly goal: number | null;
  readonly times: number[];
}

async function measure({ name, id, server, change, firstSize, times }: Row): Promise<void> {
  const size = firstSize + 256 * times.length;
  const began = performance.now();
  await change(size);
  const chat = { model: id, messages: [{ role: "user", content: "hi" }], max_tokens: 1 };
  const { status } = await server.post("/chat/completions", chat);
  times.push(performance.now() - began);
  if (status !== 200) throw new Error(`${name}: the chat was answered with ${status}`);
  if (!asSize(size).test(JSON.stringify(await server.entry(id)))) throw new Error(`${name}: not with ${size} tokens`);
  await server.post("/models/unload", { model: id });
  await listed(server, id, /"unloaded"/);
  // What follows an edit, such as the history, is not to disturb the next row.
  await new Promise((resolve) => setTimeout(resolve, 500));
}

function report({ name, vocabulary, times, goal }: Row, [router]: readonly Row[]): string {
  const shown = `${quantile(times, 0.5).toFixed(0)} (${Math.min(...times).toFixed(0)}–${Math.max(...times).toFixed(0)})`;
  const alone = router?.times ?? [];
  const ratio = quantile(times, 0.5) / quantile(alone, 0.5);
  const verdict =
    goal === null ? "" : judge(`${name}, ${vocabulary} tokens`, "time", ratio, { most: goal }, { times, alone });
  return `| ${vocabulary} tokens | ${name} | ${shown} | ${ratio.toFixed(2)} | ${verdict} |`;
}

/** Of one model, on a router and a gateway of its own. */
async function rowsOf(vocabulary: number): Promise<Row[]> {
  const folder = join(root, String(vocabulary));
  const state = join(folder, "state");
  await mkdir(state, { recursive: true });
  const repo = `acme/vocabulary-${vocabulary}`;
  const id = `${repo}:Q8_0`;
  const model = { ...talkingModel(repo), unsaid: vocabulary < 1_000 ? 0 : vocabulary };
  await cacheModel({ cacheDir }, repo, "model-Q8_0.gguf", modelBytes(model));

  const preset = join(folder, "preset.ini");
  const writePreset = (size: number): Promise<void> =>
    writeFile(preset, `[*]\noffline = true\n[${id}]\nhf-repo = ${id}\nctx-size = ${size}\n`);
  await writePreset(512);
  const routerPort = await freePort();
  const router = `http://127.0.0.1:${routerPort}`;
  const routerArgs = ["--host", "127.0.0.1", "--port", String(routerPort), "--models-preset", preset, "--no-webui"];
  const alone = await started([environment.LLAMA_SERVER, ...routerArgs], router, id);

  const save = (size: number): Promise<void> =>
    writeFile(
      join(state, "gateway.yaml"),
      `version: 1\ncontext: { default: 4096 }\nmodels: [{ id: "${id}", ctxSize: ${size} }]\n`,
    );
  await save(512);
  const port = await freePort();
  const gateway = `http://127.0.0.1:${port}`;
  const command = commandLine(["serve", "--port", String(port), "--state", state]);
  const inForce = await started(command, `${gateway}/beta/v1`, id);
  const ofModel = { vocabulary, id };
  return [
    {
      ...ofModel,
      name: "router alone: preset written, reload",
      server: alone,
      firstSize: 1024,
      goal: null,
      times: [],
      change: async (size) => {
        await writePreset(size);
        await fetch(`${router}/models?reload=1`, { headers: noReuse });
      },
    },
    {
      ...ofModel,
      name: "gateway: file saved",
      server: inForce,
      firstSize: 1024,
      goal: 2,
      times: [],
      change: async (size) => {
        await save(size);
        await listed(inForce, id, asSize(size));
      },
    },
    {
      ...ofModel,
      name: "gateway: `PATCH`",
      server: inForce,
      firstSize: 1152,
      goal: 1.3,
      times: [],
      change: (size) =>
        fetch(`${gateway}/api/desired`, {
          method: "PATCH",
          headers: { ...noReuse, "content-type": "application/merge-patch+json" },
          body: JSON.stringify({ models: { [id]: { ctxSize: size } } }),
        }),
    },
  ];
}

try {
  console.log(
    "| vocabulary | | ms until answered, median (range) | of the router alone | goal |\n|---|---|---:|---:|---|",
  );
  for (const vocabulary of vocabularies) {
    const rows = await rowsOf(vocabulary);
    for (let round = 0; round < rounds; round++) for (const row of inTurn(rows, round)) await measure(row);
    for (const row of rows) console.log(report(row, rows));
  }
} finally {
  for (const step of undo) await step();
}
