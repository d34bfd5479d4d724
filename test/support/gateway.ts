// A whole gateway for a test, on the real engine, in folders of its own; everything it starts ends with the test.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import pino, { type Logger } from "pino";
import { type Gateway, startGateway } from "../../src/app/gateway.ts";
import { linkSnapshot, writeRef } from "../../src/cache/download/link.ts";
import { blobPath } from "../../src/cache/layout/layout.ts";
import type { PullTimes } from "../../src/commands/pull-patience.ts";
import { inferTag } from "../../src/core/ids.ts";
import { readSettings, type Settings } from "../../src/settings/settings.ts";
import type { JournalEvent } from "../../src/status/journal.ts";
import type { StatusReport } from "../../src/status/report.ts";
import { cleanUp, type Ending } from "./clean-up.ts";
import { llamaServer } from "./engine.ts";
import { modelBytes, slowModel, talkingModel } from "./models.ts";
import { patienceMs, patientLimits } from "./patience.ts";
import { until } from "./scratch.ts";

export interface GatewayFolders {
  readonly root: string;
  readonly stateDir: string;
  readonly cacheDir: string;
  readonly configPath: string;
  writeConfig(yaml: string): Promise<void>;
}

export async function makeFolders(t: Ending): Promise<GatewayFolders> {
  const root = await mkdtemp(join(tmpdir(), "gateway-"));
  cleanUp(t, () => rm(root, { recursive: true, force: true }));
  const stateDir = join(root, "state");
  const cacheDir = join(root, "hub");
  await mkdir(stateDir);
  await mkdir(cacheDir);
  const configPath = join(stateDir, "gateway.yaml");
  return { root, stateDir, cacheDir, configPath, writeConfig: (yaml) => writeFile(configPath, yaml) };
}

/** Puts a model file into the cache in the hub's layout, as another tool would have; answers with its path there. */
export async function cacheModel(
  folders: Pick<GatewayFolders, "cacheDir">,
  repo: string,
  file: string,
  bytes: Uint8Array,
): Promise<string> {
  const { cacheDir } = folders;
  const blob = createHash("sha256").update(bytes).digest("hex");
  const commit = createHash("sha1").update(repo).digest("hex");
  const path = blobPath(cacheDir, repo, blob);
  await mkdir(join(path, ".."), { recursive: true });
  await writeFile(path, bytes);
  await linkSnapshot({ cacheDir, repo, commit, files: [{ path: file, blob, size: bytes.length }] });
  await writeRef(cacheDir, repo, "main", commit);
  return join(cacheDir, `models--${repo.replace("/", "--")}`, "snapshots", commit, file);
}

/** A talking model in the cache, named as its repository; answers with its id. */
export async function cacheTalker(
  folders: Pick<GatewayFolders, "cacheDir">,
  repo: string,
  name = repo,
  file = "model-Q8_0.gguf",
): Promise<string> {
  await cacheModel(folders, repo, file, modelBytes(talkingModel(name)));
  return `${repo}:${inferTag(file)}`;
}

/** The slow model of {@link makeTalkerFolders}. */
export const talker = "acme/talker:Q8_0";

/**
 * One thread: with two, which spin while they wait for each other, it falls to a tenth of its speed as soon as another test
 * keeps one core busy.
 */
export const talkerDocument = `version: 1\nmodels:\n  - { id: "${talker}", preset: { threads: 1 } }\n`;

/** Folders with a slow model, in the cache (`talkerFile`) and in the document. */
export async function makeTalkerFolders(t: Ending): Promise<GatewayFolders & { readonly talkerFile: string }> {
  const folders = await makeFolders(t);
  const bytes = modelBytes(slowModel("talker"));
  const talkerFile = await cacheModel(folders, "acme/talker", "talker-Q8_0.gguf", bytes);
  await folders.writeConfig(talkerDocument);
  return { ...folders, talkerFile };
}

export interface TestGateway extends GatewayFolders {
  readonly gateway: Gateway;
  readonly url: string;
  readonly settings: Settings;
  json(path: string, init?: RequestInit): Promise<{ status: number; body: Record<string, unknown>; headers: Headers }>;
  /** Resolves with the status once it satisfies the test; fails with the last one after a while. */
  until(what: string, test: (status: StatusReport) => boolean): Promise<StatusReport>;
  /** Everything is as the document says. */
  converged(): Promise<StatusReport>;
  /** Answer of a model, not streamed. */
  ask(model: string, content?: string): Promise<string>;
}

/** A PATCH of the document. */
export function patchWith(body: object): RequestInit {
  return { method: "PATCH", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
}

/** A chat with one message. */
export function chatWith(model: string, content = "hi", rest: object = {}): RequestInit {
  return {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model, messages: [{ role: "user", content }], ...rest }),
  };
}

/** Resolves once these and no other models are listed as loaded; an answer may come a moment sooner. */
export async function untilLoaded(gateway: TestGateway, ...ids: readonly string[]): Promise<void> {
  const wanted = ids.toSorted().join();
  await until(`loaded: ${wanted}`, async () => (await loadedIds(gateway)).toSorted().join() === wanted);
}

/** The ids of the loaded models. */
export async function loadedIds(gateway: TestGateway): Promise<string[]> {
  const { body } = await gateway.json("/beta/v1/models");
  return (body["data"] as { id: string; loaded: boolean }[]).filter((model) => model.loaded).map((model) => model.id);
}

export interface TestGatewayOptions {
  readonly folders?: GatewayFolders;
  readonly yaml?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly flags?: readonly string[];
  readonly logger?: Logger;
  readonly pulls?: PullTimes;
}

/** The settings of a test's gateway: any port, its own folders, the engine that the tests use. */
async function testSettings(
  folders: GatewayFolders,
  { environment = {}, flags = [] }: TestGatewayOptions = {},
): Promise<Settings> {
  const args = [
    "serve",
    "--port",
    "0",
    "--state",
    folders.stateDir,
    "--config",
    folders.configPath,
    "--llama-server",
    await llamaServer(),
    "--log-level",
    process.env["TEST_LOG_LEVEL"] ?? "silent",
    ...flags,
  ];
  return readSettings(args, {
    PATH: process.env["PATH"],
    HOME: folders.root,
    TMPDIR: process.env["TMPDIR"],
    HF_HUB_CACHE: folders.cacheDir,
    HF_ENDPOINT: "http://127.0.0.1:9",
    ...patientLimits,
    ...environment,
  }).settings;
}

export async function startTestGateway(t: TestContext, options: TestGatewayOptions = {}): Promise<TestGateway> {
  const folders = options.folders ?? (await makeFolders(t));
  if (options.yaml !== undefined) await folders.writeConfig(options.yaml);
  const settings = await testSettings(folders, options);
  const logger = options.logger ?? pino({ level: settings.logLevel }, pino.destination(2));
  const gateway = await startGateway({ settings, logger, ...(options.pulls ? { pulls: options.pulls } : {}) });
  cleanUp(t, () => gateway.stop());
  const until: TestGateway["until"] = (what, test) => untilStatus(gateway, what, test);
  return {
    ...folders,
    gateway,
    url: gateway.url,
    settings,
    until,
    converged: () =>
      until(
        "converged",
        (status) =>
          status.sync === "Synced" && status.running.length === 0 && status.observedGeneration === status.generation,
      ),
    json: async (path, init) => {
      const response = await fetch(gateway.url + path, init);
      return {
        status: response.status,
        body: (await response.json()) as Record<string, unknown>,
        headers: response.headers,
      };
    },
    ask: async (model, content = "hi") => {
      const response = await fetch(`${gateway.url}/beta/v1/chat/completions`, chatWith(model, content));
      const body = (await response.json()) as { choices?: { message: { content: string } }[] };
      assert.equal(response.status, 200, JSON.stringify(body));
      return body.choices?.[0]?.message.content ?? "";
    },
  };
}

/** Looks after each event of the journal: nothing that changes the status goes unrecorded. */
function untilStatus(gateway: Gateway, what: string, test: (status: StatusReport) => boolean): Promise<StatusReport> {
  return new Promise((resolve, reject) => {
    const look = (): boolean => {
      const status = gateway.status();
      if (!test(status)) return false;
      stop();
      resolve(status);
      return true;
    };
    const deadline = setTimeout(() => {
      stop();
      reject(new Error(`not ${what} within ${patienceMs} ms: ${JSON.stringify(gateway.status(), null, 1)}`));
    }, patienceMs);
    // An action's end is recorded before the pass that takes note of it.
    const again = setInterval(look, 50);
    const unfollow = gateway.journal.follow(() => void look());
    function stop(): void {
      clearTimeout(deadline);
      clearInterval(again);
      unfollow();
    }
    look();
  });
}

/** The journal's events of a type so far. */
export function eventsOf(gateway: Gateway, type: string): readonly JournalEvent[] {
  return gateway.journal.since("0").filter((event) => event.type === type);
}

/** Ids of the models in the order in which the router began to load them. */
export function loadsBegun({ gateway }: TestGateway): string[] {
  return eventsOf(gateway, "model").flatMap(({ data }) => {
    const { model, event, data: state } = data as { model: string; event: string; data?: { status?: string } };
    return event === "model_status" && state?.status === "loading" ? [model] : [];
  });
}

/** Reads an SSE chat stream; `onText` sees each piece. Answers with the text, and whether it ended with its end mark. */
export async function streamChat(
  url: string,
  model: string,
  content: string,
  onText: (text: string) => void = () => undefined,
): Promise<{ text: string; done: boolean; error: string | null }> {
  const response = await fetch(`${url}/beta/v1/chat/completions`, chatWith(model, content, { stream: true }));
  assert.equal(response.status, 200, response.status === 200 ? "" : await response.clone().text());
  let rest = "";
  let text = "";
  let done = false;
  let error: string | null = null;
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    const lines = (rest + decoder.decode(chunk as Uint8Array, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line === "data: [DONE]") done = true;
      else if (line.startsWith("data: ")) {
        const event = JSON.parse(line.slice(6)) as {
          error?: { message: string };
          choices?: { delta?: { content?: string | null } }[];
        };
        if (event.error) error = event.error.message;
        const piece = event.choices?.[0]?.delta?.content ?? "";
        if (piece === "") continue;
        text += piece;
        onText(piece);
      }
    }
  }
  return { text, done, error };
}
