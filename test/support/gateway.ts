// A whole gateway for a test, on the real engine, in folders of its own; everything it starts ends with the test.
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import pino, { type Logger } from "pino";
import { type Gateway, startGateway } from "../../src/app/gateway.ts";
import type { StatusBody } from "../../src/client/index.ts";
import type { PullTimes } from "../../src/commands/pull-patience.ts";
import { readSettings, type Settings } from "../../src/settings/settings.ts";
import type { JournalEvent } from "../../src/status/journal.ts";
import type { StatusReport } from "../../src/status/report.ts";
import { cleanUp } from "./clean-up.ts";
import { llamaServer } from "./engine.ts";
import { type GatewayFolders, makeFolders } from "./folders.ts";
import { patienceMs, patientLimits } from "./patience.ts";
import { chatWith } from "./requests.ts";
import { until } from "./scratch.ts";

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

/** What `GET /status` has of the models that the document names, by id. */
export async function modelsOf(gateway: TestGateway): Promise<Map<string, StatusBody["models"][number]>> {
  const { body } = await gateway.json("/status");
  return new Map((body as unknown as StatusBody).models.map((model) => [model.id, model]));
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

/** Ids of the models in the order in which the router began to load them, as far back as the journal goes. */
export function loadsBegun({ gateway }: TestGateway): string[] {
  return eventsOf(gateway, "model").flatMap((event) => loadBegun(event) ?? []);
}

/** The id of the model that the router began to load. */
export function loadBegun({ type, data: entry }: JournalEvent): string | null {
  const { model, event, data } = entry as { model: string; event?: string; data?: { status?: string } };
  return type === "model" && event === "model_status" && data?.status === "loading" ? model : null;
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
