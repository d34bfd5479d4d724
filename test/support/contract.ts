// The set-up that the clients' contract tests share: a gateway with models of each kind, with and without a license key,
// and the addresses under which a client may be pointed at it. Knows nothing of any client.
import assert from "node:assert/strict";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { addKey } from "../../src/keys/key-changes.ts";
import { keyFileName } from "../../src/keys/key-file.ts";
import { cacheModel, makeFolders } from "./folders.ts";
import { eventsOf, startTestGateway, type TestGateway } from "./gateway.ts";
import { startLoopbackHub } from "./loopback-hub.ts";
import { type Answers, answersOf, embeddingModel, modelBytes, talkingModel } from "./models.ts";
import { patchWith } from "./requests.ts";
import type { ScriptedModel } from "./scripted/scripted-model.ts";

/** A client's setting: where the gateway is, and what it sends as its API key; null: it sends none. */
export interface Address {
  readonly label: string;
  readonly base: string;
  readonly key: string | null;
}

export interface Contract extends TestGateway {
  /** Answers, calls tools, thinks, and writes `jsonAnswer` to a message that contains "json". */
  readonly talker: string;
  readonly says: Answers;
  /** Asked "forever", it talks for a minute: only a stop ends it sooner. */
  readonly endless: string;
  readonly embedder: string;
  /** The license key that is needed; null where none is configured. */
  readonly key: string | null;
  /** These paths as base addresses. Where a key is needed: the first, sending it, and the last, with the key in the path. */
  addresses(paths: readonly string[]): readonly Address[];
  /** The same for a client that can send no key: where one is needed, each has it in the path. */
  keylessAddresses(paths: readonly string[]): readonly Address[];
  /** This model has a request in flight. */
  generating(model: string): Promise<void>;
  /** Nothing is generated any more. Fails where it still is after 8 s. */
  idle(): Promise<void>;
}

/** Bases of clients that speak Ollama's API and append `/api/...`. */
export const nativeBases = ["", "/", "/alpha", "/alpha/"] as const;
/** Bases of clients that speak OpenAI's API and append `/chat/completions`. */
export const compatBases = ["/v1", "/v1/", "/beta/v1"] as const;

export const jsonAnswer = { city: "Paris", celsius: 21 } as const;
export const jsonSchema = {
  type: "object",
  title: "weather",
  properties: { city: { type: "string" }, celsius: { type: "integer" } },
  required: ["city", "celsius"],
  additionalProperties: false,
} as const;

/** Two tests at one gateway: while it has no license key, and once it has one. */
export function contractTest(
  title: string,
  run: (t: TestContext, contract: Contract) => Promise<void>,
  options: ContractOptions = {},
): void {
  test(title, async (t) => {
    const contract = await startContract(t, options);
    const { body } = await contract.json("/api/desired");
    await t.test("no license key configured", (inner) => run(inner, contract));
    await contract.json("/api/desired?wait=true", { ...patchWith(body["document"] as object), method: "PUT" });
    const path = join(contract.stateDir, keyFileName);
    const { key } = await addKey(path, { name: "contract", expiresAt: undefined, now: Date.now() });
    await t.test("a license key needed", (inner) => run(inner, withKey(contract, key)));
  });
}

interface ContractOptions {
  /** Context size of the talking model, in tokens; its trained one is 8192. */
  readonly ctxSize?: number;
  /** With a hub that has `pullable`. */
  readonly hub?: boolean;
}

/** What there is to pull, by a short tag: a model that calls itself "pulled". */
export const pullable = "acme/pulled-GGUF:Q4_K_M";

async function startContract(t: TestContext, options: ContractOptions): Promise<Contract> {
  const folders = await makeFolders(t);
  const add = async (repo: string, model: ScriptedModel): Promise<string> => {
    await cacheModel(folders, repo, "model-Q8_0.gguf", modelBytes(model));
    return `${repo}:Q8_0`;
  };
  const talker = await add("acme/talker", withJson(talkingModel("talker")));
  const endless = await add("acme/endless", talkingModel("endless", { contextLength: 131_072 }));
  const embedder = await add("acme/embedder", embeddingModel("embedder"));
  const hub = options.hub ? await startLoopbackHub(t) : null;
  hub?.addRepo("acme/pulled-GGUF", { files: { "pulled-Q4_K_M.gguf": modelBytes(talkingModel("pulled")) } });
  const gateway = await startTestGateway(t, {
    folders,
    yaml: documentOf([talker, endless, embedder], options.ctxSize === undefined ? {} : { [talker]: options.ctxSize }),
    environment: hub === null ? {} : { HF_ENDPOINT: hub.endpoint },
  });
  await gateway.converged();
  const addresses = (paths: readonly string[]): readonly Address[] =>
    paths.map((path) => ({ label: path || "the root", base: gateway.url + path, key: null }));
  return {
    ...gateway,
    talker,
    endless,
    embedder,
    key: null,
    says: answersOf("talker"),
    addresses,
    keylessAddresses: addresses,
    generating: async (model) => {
      await gateway.until("generating", ({ inFlight }) => (inFlight[model] ?? 0) > 0);
    },
    idle: async () => {
      await gateway.until("idle", ({ inFlight }) => Object.keys(inFlight).length === 0);
    },
  };
}

function withKey(contract: Contract, key: string): Contract {
  const sendingKey = (path: string): Address => ({ label: path || "the root", base: contract.url + path, key });
  const keyless = (path: string): Address => ({
    label: `key in the path, ${path || "the root"}`,
    base: `${contract.url}/k/${key}${path}`,
    key: null,
  });
  return {
    ...contract,
    key,
    addresses: (paths) => [...paths.slice(0, 1).map(sendingKey), ...paths.slice(-1).map(keyless)],
    keylessAddresses: (paths) => paths.map(keyless),
  };
}

function withJson(model: ScriptedModel): ScriptedModel {
  return {
    ...model,
    scripts: [...model.scripts, { when: { word: "json" }, says: '{"city": "Paris", "celsius": 21}' }],
  };
}

/** One thread each: two spin while they wait for each other, and on busy cores an answer of 10 ms took more than a second. */
function documentOf(ids: readonly string[], sizes: Readonly<Record<string, number>>): string {
  const models = ids.map((id) => ({
    id,
    ...(sizes[id] === undefined ? {} : { ctxSize: sizes[id] }),
    preset: { threads: 1, "threads-batch": 1 },
  }));
  return JSON.stringify({ version: 1, models });
}

/** What a client that sends a key sends it in. */
export function bearer({ key }: Pick<Address, "key">): Record<string, string> {
  return key === null ? {} : { authorization: `Bearer ${key}` };
}

export type Json = Readonly<Record<string, unknown>>;

interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Json;
}

/** A request as the real client writes it; `body` null sends a GET. */
export async function call(
  url: string | URL,
  body: object | null,
  headers: Readonly<Record<string, string>>,
  method = body === null ? "GET" : "POST",
): Promise<Reply> {
  const response = await fetch(url, { method, headers, ...(body === null ? {} : { body: JSON.stringify(body) }) });
  const text = await response.text();
  assert.match(text, /^\{[\s\S]*\}$/, `${method} ${String(url)} answered ${response.status}: ${text.slice(0, 300)}`);
  return { status: response.status, headers: response.headers, body: JSON.parse(text) as Json };
}

type Posting = readonly [url: string | URL, body: object, headers: Readonly<Record<string, string>>];

async function streamed(contentType: string, [url, body, headers]: Posting): Promise<string> {
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  const text = await response.text();
  assert.equal(response.status, 200, text);
  assert.ok(response.headers.get("content-type")?.startsWith(contentType));
  return text;
}

/** The records of a native stream, each on a line of its own, the last line ended too. */
export async function records(...posting: Posting): Promise<Json[]> {
  const lines = (await streamed("application/x-ndjson", posting)).split("\n");
  assert.equal(lines.pop(), "");
  return lines.map((line) => JSON.parse(line) as Json);
}

/** The parsed frames of an event stream; `[DONE]` ended it. */
export async function frames(...posting: Posting): Promise<Json[]> {
  const text = await streamed("text/event-stream", posting);
  const data = text.split("\n\n").flatMap((frame) => (frame.startsWith("data: ") ? [frame.slice(6)] : []));
  assert.equal(data.pop(), "[DONE]");
  return data.map((frame) => JSON.parse(frame) as Json);
}

/** The actions of these kinds that were finished so far. */
export function finished({ gateway }: TestGateway, ...kinds: readonly string[]): string[] {
  return eventsOf(gateway, "action.finished")
    .map((event) => (event.data as { readonly kind: string }).kind)
    .filter((kind) => kinds.length === 0 || kinds.includes(kind));
}

/** Asserts that a LangChain answer tells its tokens, and that they add up. */
export function checkUsage({ usage_metadata }: { readonly usage_metadata?: unknown }): void {
  const usage = usage_metadata as
    | Partial<Record<"input_tokens" | "output_tokens" | "total_tokens", number>>
    | undefined;
  const { input_tokens = 0, output_tokens = 0, total_tokens } = usage ?? {};
  assert.ok(input_tokens > 0 && output_tokens > 0, JSON.stringify(usage));
  assert.equal(total_tokens, input_tokens + output_tokens);
}
