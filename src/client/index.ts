// A typed client of the gateway for companion apps: browsers and Node, no dependency. Its types are those of the schemas
// that the gateway describes itself with.
import type { ContextSizeSet, Ejected, HubFiles, HubRepos, Removed, RpcRoster } from "../../schemas/admin.ts";
import type { ReconciledBody } from "../../schemas/desired.ts";
import type { ModelEntry, ModelList } from "../../schemas/openai.ts";
import type { PlanBody } from "../../schemas/plan.ts";
import type { ShortStatusBody, StatusBody } from "../../schemas/status.ts";
import { type DesiredCalls, desiredCalls } from "./desired.ts";
import { type DiskCalls, diskCalls } from "./disk.ts";
import { type EventsOptions, followEvents, type GatewayEvent } from "./events.ts";
import { type PullOptions, pullModel } from "./pull.ts";
import { type SpeechCalls, speechCalls } from "./speech.ts";
import { type CallOptions, createTransport, type TransportOptions } from "./transport.ts";

export type { ContextSizeSet, Ejected, HubFiles, HubRepos, Removed, RpcRoster } from "../../schemas/admin.ts";
export type { CollectedBody, DiskBody } from "../../schemas/disk.ts";
export type { DocumentInput } from "../../schemas/document.ts";
export type { NativePullRecord } from "../../schemas/ollama.ts";
export type { ModelEntry } from "../../schemas/openai.ts";
export type { PlanBody } from "../../schemas/plan.ts";
export type { ShortStatusBody, StatusBody } from "../../schemas/status.ts";
export type { ChangeOptions, Desired, DesiredCalls, DocumentPatch } from "./desired.ts";
export type { DiskCalls } from "./disk.ts";
export { GatewayClientError } from "./error.ts";
export type { EventsOptions, GatewayEvent } from "./events.ts";
export type { PullOptions } from "./pull.ts";
export type { SpeechCalls, TranscribeOptions } from "./speech.ts";
export type { CallOptions } from "./transport.ts";
export type GatewayClientOptions = TransportOptions;

/** Every call rejects with a `GatewayClientError`, and an abort as `fetch` does. */
export interface GatewayClient {
  /** The short form where a license key is needed and this client has none. */
  status(options?: CallOptions): Promise<StatusBody | ShortStatusBody>;
  models(options?: CallOptions): Promise<readonly ModelEntry[]>;
  /** Resolves once the size is in force. */
  setContextSize(model: string, ctxSize: number, options?: CallOptions): Promise<ContextSizeSet>;
  /** Unloads it; its files stay. */
  eject(model: string, options?: CallOptions): Promise<Ejected>;
  /** Deletes its files; with `dryRun` it only returns the id of the model. */
  remove(model: string, options?: CallOptions & { readonly dryRun?: boolean }): Promise<Removed>;
  pull(model: string, options?: PullOptions): Promise<void>;
  /** Repositories of GGUF models on the hub. */
  searchHub(q: string, options?: CallOptions & { readonly limit?: number }): Promise<HubRepos>;
  /** The `.gguf` files of a repository. */
  repoFiles(repo: string, options?: CallOptions): Promise<HubFiles>;
  readonly rpc: {
    setMode(mode: "single" | "rpc", options?: CallOptions): Promise<RpcRoster>;
    /** `host:port` each. */
    addWorkers(workers: readonly string[], options?: CallOptions): Promise<RpcRoster>;
    removeWorkers(workers: readonly string[], options?: CallOptions): Promise<RpcRoster>;
  };
  readonly desired: DesiredCalls;
  readonly disk: DiskCalls;
  plan(options?: CallOptions): Promise<PlanBody>;
  /** Runs a pass now, also for stalled actions. */
  reconcile(options?: CallOptions & { readonly wait?: boolean }): Promise<ReconciledBody>;
  events(options?: EventsOptions): AsyncIterable<GatewayEvent>;
  readonly speech: SpeechCalls;
}

export function createGatewayClient(options: GatewayClientOptions): GatewayClient {
  if (typeof options?.baseUrl !== "string") throw new TypeError("baseUrl is missing: http://HOST:PORT of the gateway");
  const transport = createTransport(options);
  // The paths below the root are there whatever the prefixes are set to.
  const post = <T>(path: string, json: unknown, { signal }: CallOptions = {}): Promise<T> =>
    transport.json(path, { method: "POST", json, signal });

  return {
    status: (call = {}) => transport.json("/status", call),
    models: async (call = {}) => (await transport.json<ModelList>("/v1/models", call)).data,
    setContextSize: (model, ctxSize, call) => post("/api/set-ctx-size", { model, ctx_size: ctxSize }, call),
    eject: (model, call) => post("/api/eject-model", { model }, call),
    remove: (model, { dryRun, signal } = {}) =>
      transport.json("/api/remove-model", { method: "POST", json: { model }, query: { dryRun }, signal }),
    pull: (model, call = {}) => pullModel(transport, model, call),
    searchHub: (q, { limit, signal } = {}) => transport.json("/api/hf/search", { query: { q, limit }, signal }),
    repoFiles: (repo, { signal } = {}) => transport.json("/api/hf/repo-files", { query: { repo }, signal }),
    rpc: {
      setMode: (mode, call) => post("/api/rpc/mode", { mode }, call),
      addWorkers: (workers, call) => post("/api/rpc/workers", { workers }, call),
      removeWorkers: (workers, call) => post("/api/rpc/workers/remove", { workers }, call),
    },
    desired: desiredCalls(transport),
    disk: diskCalls(transport),
    plan: (call = {}) => transport.json("/api/plan", call),
    reconcile: ({ wait, signal } = {}) => transport.json("/api/reconcile", { method: "POST", query: { wait }, signal }),
    events: (call = {}) => followEvents(transport, call),
    speech: speechCalls(transport),
  };
}
