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

const rounds = 15;
const root = await mkdtemp(join(tmpdir(), "gateway-edit-"));
const cacheDir = join(root, "hub");
const id = await cacheTalker({ cacheDir }, "acme/bench");
const environment = { PATH: process.env["PATH"] ?? "", HF_HUB_CACHE: cacheDir, LLAMA_SERVER: await installedServer() };
const undo: (() => Promise<unknown>)[] = [() => rm(root, { recursive: true, force: true })];

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
    list: () => fetch(`${api}/models`).then((answer) => answer.text()),
    post: (path, body) =>
      fetch(`${api}${path}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
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

async function measure(name: string, server: Server, change: (size: number) => Promise<unknown>): Promise<void> {
  const times: [listed: number, answered: number][] = [];
  for (let round = 0; round < rounds; round++) {
    const size = 1024 + 256 * round;
    const began = performance.now();
    await change(size);
    await listed(server, new RegExp(`"${size}"|: ?${size}\\b`));
    const listedMs = performance.now() - began;
    const { status } = await server.post("/chat/completions", chat);
    if (status !== 200) throw new Error(`${name}: the chat was answered with ${status}`);
    times.push([listedMs, performance.now() - began]);
    await server.post("/models/unload", {});
    await listed(server, /"unloaded"/);
    // Edits that follow one another closely are made as one.
    await new Promise((resolve) => setTimeout(resolve, 600));
  }
  const figures = ([0, 1] as const).map((which) => {
    const sorted = times.map((time) => Math.round(time[which])).toSorted((a, b) => a - b);
    return `${sorted[Math.floor(rounds / 2)]} (${sorted[0]}–${sorted.at(-1)})`;
  });
  console.log(`| ${name} | ${figures.join(" | ")} |`);
}

try {
  console.log("| ms, median (range) | listed | answered |\n|---|---:|---:|");
  const preset = join(root, "preset.ini");
  const writePreset = (size: number): Promise<void> =>
    writeFile(preset, `[*]\noffline = true\n[${id}]\nhf-repo = ${id}\nctx-size = ${size}\n`);
  await writePreset(512);
  const routerPort = await freePort();
  const router = `http://127.0.0.1:${routerPort}`;
  const routerArgs = ["--host", "127.0.0.1", "--port", String(routerPort), "--models-preset", preset, "--no-webui"];
  await measure(
    "router alone: preset written, reload",
    await started([environment.LLAMA_SERVER, ...routerArgs], router),
    async (size) => {
      await writePreset(size);
      await fetch(`${router}/models?reload=1`);
    },
  );

  const state = join(root, "state");
  const file = join(state, "gateway.yaml");
  const save = (size: number): Promise<void> =>
    writeFile(file, `version: 1\nmodels: [{ id: "${id}", ctxSize: ${size} }]\n`);
  await mkdir(state);
  await save(512);
  const port = await freePort();
  const gateway = `http://127.0.0.1:${port}`;
  const inForce = await started(commandLine(["serve", "--port", String(port), "--state", state]), `${gateway}/beta/v1`);
  await measure("gateway: file saved", inForce, save);
  await measure("gateway: PATCH", inForce, (size) =>
    fetch(`${gateway}/api/desired`, {
      method: "PATCH",
      headers: { "content-type": "application/merge-patch+json" },
      body: JSON.stringify({ models: { [id]: { ctxSize: size } } }),
    }),
  );
} finally {
  for (const step of undo) await step();
}
