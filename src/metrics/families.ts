// Every family of metrics as data: its type, labels and meaning. What is served, the docs and the checks of the alerts follow from it.
// Pure.

export interface Family {
  readonly type: "gauge" | "counter" | "histogram";
  readonly help: string;
  readonly labels: readonly string[];
}

const family =
  (type: Family["type"]) =>
  (help: string, ...labels: readonly string[]): Family => ({ type, help, labels });
const gauge = family("gauge");
const counter = family("counter");
const histogram = family("histogram");

/** Before the name of each. */
export const prefix = "model_gateway_";

/** Seconds. Few bounds: each is a line per route and model. A load takes minutes, and a request waits for it. */
export const waitBounds = [0.05, 0.25, 1, 5, 15, 60, 300];
export const firstTokenBounds = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120];
export const requestBounds = [0.5, 1, 2.5, 5, 10, 30, 60, 120, 600];
export const actionBounds = [0.1, 0.5, 1, 5, 10, 30, 60, 300, 1_800, 7_200];

export const families = {
  info: gauge("1; its label has the version.", "version"),
  ready: gauge("Whether chats can be served and nothing is stuck: condition `Ready`."),
  healthy: gauge("Whether nothing fails: condition `Healthy`."),
  synced: gauge("Whether everything is as the document says: condition `Synced`."),
  source_valid: gauge("Whether gateway.yaml is applied: condition `SourceValid`."),
  stalled: gauge("Whether an action has failed and is not retried: condition `Stalled`."),
  condition: gauge("1 for the status that a condition of the gateway has, else 0.", "type", "status"),
  document_info: gauge(
    "1; its label has the SHA-256 of the document: the same on gateways with the same document.",
    "hash",
  ),
  generation: gauge("Generation of the document."),
  observed_generation: gauge("Generation of the document that the last pass worked on."),
  last_success_timestamp_seconds: gauge("When a pass last found everything as the document says; 0: never."),
  drift_mended_total: counter("Times that something differed from the document without an edit and was brought back."),
  actions_total: counter("Actions that ended.", "kind", "outcome"),
  action_duration_seconds: histogram("How long actions took that succeeded.", "kind"),
  router_connected: gauge("Whether the router answers."),
  router_reloads_total: counter("Reloads of the router."),
  router_restarts_total: counter("Starts of the router after its first one, planned and after a crash."),
  pull_bytes_total: counter("Bytes downloaded by pulls."),
  queued_requests: gauge("Requests to models that wait: for a model, or for a parallel slot of its process."),
  running_requests: gauge("Requests to models that a process computes."),
  busy_ratio: gauge("Share of the loaded models' parallel slots that are in use, 0 to 1."),
  loaded_models: gauge("Models that are loaded."),
  model_slots: gauge("Models that may be loaded at once."),
  model_ready: gauge(
    "Whether requests for a model are answered: its condition `Ready`. `desired`: the document names it.",
    "model",
    "desired",
  ),
  model_loaded: gauge("Whether a model is loaded.", "model"),
  model_loads_total: counter("Loads of models that ended.", "model", "outcome"),
  model_unloads_total: counter(
    "Processes of models that ended: idle, for another model, for a change, or by a crash.",
    "model",
  ),
  requests_total: counter(
    "Requests that ended. `status` is the class (`2xx`) of the answer, or of the error in which it ended; `cancelled`: the client left.",
    "family",
    "route",
    "model",
    "status",
  ),
  first_token_seconds: histogram(
    "From a request to the first bytes of its answer, of answers that the engine streams.",
    "family",
    "route",
    "model",
  ),
  request_duration_seconds: histogram(
    "From a request to a model to the end of its answer.",
    "family",
    "route",
    "model",
  ),
  prompt_tokens_total: counter("Tokens of prompts, as the engine counts them.", "model"),
  completion_tokens_total: counter("Tokens of answers, as the engine counts them.", "model"),
  queue_wait_seconds: histogram("How long requests waited before they were sent to their model.", "model"),
  requests_in_flight: gauge("Answers under way.", "model"),
  requests_waiting: gauge("Requests that wait, by what they wait for.", "model", "for"),
  oldest_wait_seconds: gauge("How long the oldest of them has waited.", "model", "for"),
  speech_requests: gauge("Speech requests, running and queued.", "engine"),
} as const satisfies Readonly<Record<string, Family>>;

export type FamilyName = keyof typeof families;
