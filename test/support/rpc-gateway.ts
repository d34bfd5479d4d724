// A gateway in RPC mode for a test, and what can be seen of its workers.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { presetEndpoints } from "../../src/plan/workers.ts";
import type { StatusReport } from "../../src/status/report.ts";
import { cacheModel, type GatewayFolders, makeFolders } from "./folders.ts";
import { startTestGateway, type TestGateway } from "./gateway.ts";
import { modelBytes, slowModel } from "./models.ts";
import type { TestWorker } from "./rpc-worker.ts";

/** Looks often, and takes a lost worker back soon. */
const quickFlags = ["--worker-interval", "0.2", "--worker-stable", "1"] as const;

/** One thread for the model, as two that spin while they wait for each other crawl as soon as another test runs. */
export function rpcDocument(workers: readonly Pick<TestWorker, "address">[], rest = "", preset = ""): string {
  const roster = workers.map(({ address }) => `"${address}"`).join(", ");
  const model = `{ id: "acme/talker:Q8_0", preset: { threads: 1${preset} } }`;
  return `version: 1\nmodels: [${model}]\nrpc: { mode: rpc, workers: [${roster}]${rest} }\n`;
}

export interface RpcGateway extends TestGateway {
  /** A slow model, so that an answer lasts. */
  readonly model: string;
  /** The endpoints that the preset file names. */
  inPreset(): Promise<readonly string[]>;
}

export async function startRpcGateway(
  t: TestContext,
  workers: readonly Pick<TestWorker, "address">[],
  options: {
    /** Further keys of `rpc`, and of the model's preset: `, key: value`. */
    readonly rest?: string;
    readonly preset?: string;
    readonly flags?: readonly string[];
    readonly folders?: GatewayFolders;
    /** How many of the workers answer; default: all. */
    readonly answering?: number;
  } = {},
): Promise<RpcGateway> {
  const folders = options.folders ?? (await makeFolders(t));
  await cacheModel(folders, "acme/talker", "model-Q8_0.gguf", modelBytes(slowModel("acme/talker")));
  const gateway = await startTestGateway(t, {
    folders,
    yaml: rpcDocument(workers, options.rest, options.preset),
    flags: [...quickFlags, ...(options.flags ?? [])],
  });
  // On a busy machine a worker may miss a probe at first.
  const answering = options.answering ?? workers.length;
  await gateway.until("the workers answer", (status) => {
    const answer = reachable(status).filter((verdict) => verdict === "True Answering");
    return answer.length === answering;
  });
  await gateway.converged();
  return {
    ...gateway,
    model: "acme/talker:Q8_0",
    inPreset: async () => presetEndpoints(await readFile(join(folders.stateDir, "router.preset.ini"), "utf8")),
  };
}

/** Why each worker is reachable or not: `True Answering`. */
export function reachable({ rpc }: StatusReport): string[] {
  return rpc.workers.map(({ conditions }) => {
    const condition = conditions.find(({ type }) => type === "Reachable");
    return `${condition?.status} ${condition?.reason}`;
  });
}

/** ms since `from`, for a figure in the test's output. */
export function since(from: number): string {
  return `${Math.round(performance.now() - from)} ms`;
}

/** How often the router was told to read its preset again. */
export function reloads({ gateway }: TestGateway): number {
  return gateway.journal
    .since("0")
    .filter(({ type, data }) => type === "action.finished" && (data as { kind: string }).kind === "router.reload")
    .length;
}

/** Calls back once, when the router begins to load a model. */
export function onLoading({ gateway }: TestGateway, callback: () => void): void {
  const stop = gateway.journal.follow(({ type, data }) => {
    if (type !== "model" || !JSON.stringify(data).includes('"loading"')) return;
    stop();
    callback();
  });
}
