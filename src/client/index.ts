// A typed client of the gateway for companion apps: browsers and Node, no dependency. Its types are those of the schemas of
// the gateway's routes.
import type {
  BenchBody,
  ContextSizeSet,
  Ejected,
  HubFiles,
  HubModels,
  HubRepos,
  Removed,
  RpcRoster,
} from "../../schemas/admin.ts";
import type { DesiredBody, ReconciledBody } from "../../schemas/desired.ts";
import type { CollectedBody, DiskBody } from "../../schemas/disk.ts";
import type { DocumentInput } from "../../schemas/document.ts";
import type { GenerationBody, HistoryBody } from "../../schemas/history.ts";
import type { NativeShown } from "../../schemas/ollama.ts";
import type { ModelEntry, ModelList } from "../../schemas/openai.ts";
import type { PlanBody } from "../../schemas/plan.ts";
import type { RequestCancelled, RequestsBody } from "../../schemas/requests.ts";
import type {
  CachedTranscriptionModels,
  CachedVoices,
  SpeechRequest,
  Transcription,
  TranscriptionModels,
  Voices,
} from "../../schemas/speech.ts";
import type { ShortStatusBody, StatusBody } from "../../schemas/status.ts";
import { type ChatPart, type ChatRequest, streamChat } from "./chat.ts";
import { GatewayClientError } from "./error.ts";
import {
  type EventsOptions,
  followEvents,
  followLogs,
  type GatewayEvent,
  type LogOptions,
  type PullOptions,
  pullModel,
} from "./streams.ts";
import {
  type CallOptions,
  type ClientRequest,
  createTransport,
  type Transport,
  type TransportOptions,
} from "./transport.ts";

export type {
  BenchBody,
  ContextSizeSet,
  Ejected,
  HubFiles,
  HubModels,
  HubRepos,
  Removed,
  RpcRoster,
} from "../../schemas/admin.ts";
export type { CollectedBody, DiskBody } from "../../schemas/disk.ts";
export type { DocumentInput } from "../../schemas/document.ts";
export type { GenerationBody, HistoryBody } from "../../schemas/history.ts";
export type { NativePullRecord, NativeShown } from "../../schemas/ollama.ts";
export type { ModelEntry } from "../../schemas/openai.ts";
export type { PlanBody } from "../../schemas/plan.ts";
export type { RequestsBody } from "../../schemas/requests.ts";
export type { ShortStatusBody, StatusBody } from "../../schemas/status.ts";
export type { ChatMessage, ChatPart, ChatRequest } from "./chat.ts";
export { GatewayClientError } from "./error.ts";
export type { EventsOptions, GatewayEvent, LogOptions, PullOptions } from "./streams.ts";
export type { CallOptions } from "./transport.ts";
export type GatewayClientOptions = TransportOptions;

/** Every call rejects with a `GatewayClientError`, and an abort as `fetch` does. */
export type GatewayClient = ReturnType<typeof createGatewayClient>;

/** `etag` is for that of a change: it is refused (412) if the document has changed since. */
export type Desired = DesiredBody & { readonly etag: string };

export interface ChangeOptions extends CallOptions {
  readonly etag?: string;
  /** Resolve once it is reconciled. */
  readonly wait?: boolean;
  /** Seconds to wait. */
  readonly timeout?: number;
}

export interface PlanOptions extends CallOptions {
  /** The hub is not asked for the sizes of what is pulled. */
  readonly offline?: boolean;
}

export interface ApplyOptions extends ChangeOptions {
  /** Where the text comes from: a commit. */
  readonly revision?: string | undefined;
}

/** A JSON merge patch. `models` may be an object by id, where null takes a model out. */
export type DocumentPatch = Readonly<Record<string, unknown>>;

export interface TranscribeOptions extends CallOptions {
  readonly model?: string;
  /** Default `audio.wav`. */
  readonly fileName?: string;
}

export function createGatewayClient(options: GatewayClientOptions) {
  if (typeof options?.baseUrl !== "string") throw new TypeError("baseUrl is missing: http://HOST:PORT of the gateway");
  const transport = createTransport(options);
  // The paths below the root are there whatever the prefixes are set to.
  const get = <T>(path: string, { signal }: CallOptions = {}, query = {}): Promise<T> =>
    transport.json(path, { query, signal });
  const post = <T>(path: string, json: unknown, { signal }: CallOptions = {}, query = {}): Promise<T> =>
    transport.json(path, { method: "POST", json, query, signal });

  return {
    /** The short form where a license key is needed and this client has none. */
    status: (call?: CallOptions) => get<StatusBody | ShortStatusBody>("/status", call),
    models: async (call?: CallOptions): Promise<readonly ModelEntry[]> =>
      (await get<ModelList>("/v1/models", call)).data,
    /** By its id, an alias, or a short name that only one has. */
    model: (name: string, call?: CallOptions) => get<ModelEntry>(`/v1/models/${encodeURI(name)}`, call),
    /** What its files hold: parameters, quantization, capabilities, license. */
    show: (model: string, call?: CallOptions) => post<NativeShown>("/api/show", { model }, call),
    /** The answer as it comes. An abort throws; an error has status 200 if it came in the stream, and code `cut` if that broke off. */
    chat: (request: ChatRequest, call: CallOptions = {}): AsyncIterable<ChatPart> =>
      streamChat(transport, request, call),
    /** Resolves once the model is in memory. `keepAlive`: how long it stays there idle, `5m`, or seconds; -1 for ever. */
    load: async (model: string, { keepAlive, ...call }: CallOptions & { readonly keepAlive?: string | number } = {}) =>
      void (await post("/api/generate", { model, stream: false, keep_alive: keepAlive }, call)),
    /** Resolves once the size is in force. */
    setContextSize: (model: string, ctx_size: number, call?: CallOptions) =>
      post<ContextSizeSet>("/api/set-ctx-size", { model, ctx_size }, call),
    /** Unloads it; its files stay. */
    eject: (model: string, call?: CallOptions) => post<Ejected>("/api/eject-model", { model }, call),
    /** Measures it, which takes minutes; it is unloaded before. An abort ends it. */
    bench: (model: string, call?: CallOptions) => post<BenchBody>("/api/bench-model", { model }, call),
    /** Deletes its files; with `dryRun` it only returns the id of the model. */
    remove: (model: string, { dryRun, ...call }: CallOptions & { readonly dryRun?: boolean } = {}) =>
      post<Removed>("/api/remove-model", { model }, call, { dryRun }),
    /**
     * Resolves once the router lists the model. An abort cancels the pull, unless it is kept or another client waits for it too.
     * An error has status 200 if the pull failed after it began, and code `cut` if the connection broke.
     */
    pull: (model: string, call: PullOptions = {}) => pullModel(transport, model, call),
    /** Repositories of GGUF models on the hub; with `license` the license of each. */
    searchHub: (
      q: string,
      { limit, license, ...call }: CallOptions & { readonly limit?: number; readonly license?: boolean } = {},
    ) => get<HubRepos>("/api/hf/search", call, { q, limit, license }),
    /** The `.gguf` files of a repository. */
    repoFiles: (repo: string, call?: CallOptions) => get<HubFiles>("/api/hf/repo-files", call, { repo }),
    /** The models of a repository, with what each would take of memory: that takes seconds. */
    repoModels: (repo: string, call?: CallOptions) =>
      get<HubModels>("/api/hf/repo-files", call, { repo, memory: true }),
    rpc: {
      setMode: (mode: "single" | "rpc", call?: CallOptions) => post<RpcRoster>("/api/rpc/mode", { mode }, call),
      /** `host:port` each. */
      addWorkers: (workers: readonly string[], call?: CallOptions) =>
        post<RpcRoster>("/api/rpc/workers", { workers }, call),
      removeWorkers: (workers: readonly string[], call?: CallOptions) =>
        post<RpcRoster>("/api/rpc/workers/remove", { workers }, call),
    },
    requests: {
      /** Requests in flight, the oldest first. */
      list: async (call?: CallOptions) => (await get<RequestsBody>("/api/requests", call)).requests,
      /** False: it was over already. */
      cancel: async (id: number, call?: CallOptions) =>
        (await post<RequestCancelled>("/api/requests/cancel", { id }, call)).cancelled,
    },
    desired: desiredCalls(transport),
    history: historyCalls(transport),
    disk: {
      /** Every model with its size, and the sums. */
      report: (call?: CallOptions) => get<DiskBody>("/api/models/disk", call),
      /** What garbage collection would delete, and why; with `dryRun: false` it is deleted. */
      collect: ({ dryRun = true, ...call }: CallOptions & { readonly dryRun?: boolean } = {}) =>
        post<CollectedBody>("/api/models/gc", undefined, call, { dryRun }),
    },
    /** `offline`: the hub is not asked for sizes. */
    plan: ({ offline, ...call }: PlanOptions = {}) => get<PlanBody>("/api/plan", call, { offline }),
    /** Runs a pass now, also for stalled actions. */
    reconcile: ({ wait, ...call }: CallOptions & { readonly wait?: boolean } = {}) =>
      post<ReconciledBody>("/api/reconcile", undefined, call, { wait }),
    /** Ends with the connection; an abort ends it without an error. */
    events: (call: EventsOptions = {}): AsyncIterable<GatewayEvent> => followEvents(transport, call),
    /** In the text format of Prometheus. */
    metrics: async ({ signal }: CallOptions = {}) => (await transport.send("/metrics", { signal })).text(),
    /** The engines' last lines, of one model or of all. */
    logs: async ({ model, tail, signal }: LogOptions = {}) =>
      (await transport.send("/api/logs", { query: { model, tail }, signal })).text(),
    /** Line by line, and then new ones as they come; an abort ends it without an error. */
    followLogs: (call: LogOptions = {}): AsyncIterable<string> => followLogs(transport, call),
    /** All fail with `speech_off` where speech is off. */
    speech: {
      transcribe: (audio: Blob, { model, fileName = "audio.wav", signal }: TranscribeOptions = {}) => {
        const form = new FormData();
        form.set("file", audio, fileName);
        if (model !== undefined) form.set("model", model);
        return transport.json<Transcription>("/v1/audio/transcriptions", { method: "POST", form, signal });
      },
      /** Resolves with a WAV file. */
      speak: async (json: SpeechRequest, { signal }: CallOptions = {}): Promise<Blob> => {
        const response = await transport.send("/v1/audio/speech", { method: "POST", json, signal });
        return response.blob();
      },
      voices: {
        cached: async (call?: CallOptions) => (await get<CachedVoices>("/api/tts/voices/cached", call)).voices,
        /** At most 50. */
        search: (q: string, call?: CallOptions) => get<Voices>("/api/tts/voices/search", call, { q }),
      },
      transcriptionModels: {
        cached: async (call?: CallOptions) =>
          (await get<CachedTranscriptionModels>("/api/stt/models/cached", call)).models,
        search: (q: string, call?: CallOptions) => get<TranscriptionModels>("/api/stt/models/search", call, { q }),
      },
    },
  };
}

function desiredCalls(transport: Transport) {
  const path = "/api/desired";

  return {
    get: async ({ signal }: CallOptions = {}) => withEtag(await transport.send(path, { signal })),
    /** The document as the text of a gateway.yaml. */
    text: async ({ signal }: CallOptions = {}): Promise<{ readonly yaml: string; readonly etag: string }> => {
      const response = await transport.send(path, { headers: { accept: "application/yaml" }, signal });
      return { yaml: await response.text(), etag: etagOf(response) };
    },
    /** Replaces the document by the text of one. */
    putText: (yaml: string, options?: ChangeOptions) => changeCall(transport, path, { method: "PUT", yaml }, options),
    /** The plan of {@link putText}; changes nothing. */
    planText: (yaml: string, { offline, signal }: PlanOptions = {}) =>
      transport.json<PlanBody>(path, { method: "PUT", yaml, query: { dryRun: true, offline }, signal }),
    /** Replaces the document. */
    put: (document: DocumentInput, options?: ChangeOptions) =>
      changeCall(transport, path, { method: "PUT", json: document }, options),
    patch: (json: DocumentPatch, options?: ChangeOptions) =>
      changeCall(transport, path, { method: "PATCH", json }, options),
    /** The text of a gateway.yaml becomes the applied file: what its author changed since the last one is merged in. */
    apply: (yaml: string | Uint8Array, { revision, ...options }: ApplyOptions = {}) =>
      changeCall(transport, path, { method: "PUT", yaml, query: { apply: true, revision } }, options),
    /** Takes out what calls have set: these fields, or all of it. */
    reset: (fields?: readonly string[], options?: ChangeOptions) =>
      changeCall(transport, "/api/desired/reset", { method: "POST", json: fields ? { fields } : {} }, options),
    /** The plan of {@link apply}; changes nothing. */
    planApply: (yaml: string | Uint8Array, { offline, signal }: PlanOptions = {}) =>
      transport.json<PlanBody>(path, { method: "PUT", yaml, query: { apply: true, dryRun: true, offline }, signal }),
    /** The plan of a patch; changes nothing. */
    planPatch: (json: DocumentPatch, { offline, signal }: PlanOptions = {}) =>
      transport.json<PlanBody>(path, { method: "PATCH", json, query: { dryRun: true, offline }, signal }),
  };
}

function historyCalls(transport: Transport) {
  const path = "/api/history";
  return {
    /** The last generations and what drifted, the newest first. */
    list: ({ signal }: CallOptions = {}) => transport.json<HistoryBody>(path, { signal }),
    /** What it changed, and its document. */
    get: (generation: number, { signal }: CallOptions = {}) =>
      transport.json<GenerationBody>(`${path}/${generation}`, { signal }),
    /** A new generation with the document of that one. */
    rollback: (generation: number, options?: ChangeOptions) =>
      changeCall(transport, `${path}/${generation}/rollback`, { method: "POST" }, options),
    /** The plan of {@link rollback}; changes nothing. */
    planRollback: (generation: number, { offline, signal }: PlanOptions = {}) => {
      const query = { dryRun: true, offline };
      return transport.json<PlanBody>(`${path}/${generation}/rollback`, { method: "POST", query, signal });
    },
  };
}

async function changeCall(
  transport: Transport,
  path: string,
  { query, ...request }: ClientRequest,
  { etag, wait, timeout, signal }: ChangeOptions = {},
): Promise<Desired> {
  const headers = etag === undefined ? {} : { "if-match": etag };
  return withEtag(await transport.send(path, { ...request, query: { wait, timeout, ...query }, headers, signal }));
}

async function withEtag(response: Response): Promise<Desired> {
  const etag = etagOf(response);
  return { ...((await response.json()) as DesiredBody), etag };
}

function etagOf({ headers, status }: Response): string {
  const etag = headers.get("etag");
  if (etag === null) throw new GatewayClientError(status, "the response has no ETag");
  return etag;
}
