// The catalog of error codes: HTTP status, condition reason, reaction of the reconciler, hint. Pure data.

/** Of a failed action. `retry`: some times; `wait`: for ever, the cause lies outside; `stall`: not until document or engine change. */
export type Reaction = "retry" | "wait" | "stall";

interface ErrorKind {
  /** HTTP status of a request that fails with it. */
  readonly status: number;
  readonly reaction: Reaction;
  /** The remedy, an imperative. */
  readonly hint: string;
  /** CamelCase, in conditions: the code itself, if the row has no other. */
  readonly reason: string;
}

type MakeKind = (status: number, hint: string, reason?: string) => Omit<ErrorKind, "reason"> & { reason?: string };
const kindOf =
  (reaction: Reaction): MakeKind =>
  (status, hint, reason) => ({ status, reaction, hint, ...(reason === undefined ? {} : { reason }) });
const retry = kindOf("retry");
const wait = kindOf("wait");
const stall = kindOf("stall");

const rows = {
  invalid_request: stall(400, "Correct the request; the message names the field."),
  invalid_document: stall(400, "Correct the keys that the message lists; nothing was changed."),
  unauthorized: stall(
    401,
    "Send a license key: Authorization: Bearer KEY, X-License-Key or x-api-key, or /k/KEY before the path.",
  ),
  file_only: stall(
    403,
    "Set it in gateway.yaml: only the file may name files of this machine. A request may keep or remove the value.",
  ),
  forbidden_origin: stall(403, "Use a loopback name or address, and no page of another origin."),
  scope_missing: stall(403, "Use a license key of scope `all`."),
  not_found: stall(404, "GET /openapi.json lists the routes."),
  model_not_found: stall(404, "Use a model of GET /v1/models, or add it to gateway.yaml."),
  generation_not_found: stall(404, "Use a generation that `model-gateway history` or GET /api/history lists."),
  voice_not_found: stall(404, "Use an id from GET /api/tts/voices/search?q=TEXT."),
  transcription_model_not_found: stall(404, "Use a name from GET /api/stt/models/search?q=TEXT."),
  not_capable: stall(400, "Use another model: POST /api/show lists the capabilities."),
  method_not_allowed: stall(405, "Use a method of the Allow header."),
  suspended: stall(409, "Remove `suspend: true` from the document: the change is stored and applied then."),
  file_managed: stall(409, "Change the field in gateway.yaml: --writes file leaves the document to the file."),
  precondition_failed: stall(412, "Read the document again and repeat the change: it has changed since."),
  upload_stalled: retry(408, "Send it again without pauses: the engine takes one upload at a time."),
  body_too_large: stall(413, "Send less; --body-limit sets the limit of a chat."),
  sound_too_long: stall(413, "Send the sound in parts; --transcription-memory sets how much memory one may take."),
  unsupported_media_type: stall(415, "Send Content-Type: application/json."),
  internal: retry(500, "Report this defect with the log.", "InternalError"),
  model_load_failed: retry(
    500,
    "The message has the router's last output; usual causes are a file that is not GGUF and too little memory.",
    "LoadFailed",
  ),
  not_supported: stall(501, "Use another route: this gateway does not support it."),
  upstream_failed: retry(502, "Repeat the request: the engine failed and is restarted."),
  router_unavailable: retry(503, "See GET /status: the router is starting or failing."),
  too_few_workers: wait(503, "Start RPC workers, or lower rpc.minWorkers; GET /status has the condition of each."),
  speech_off: stall(
    503,
    "Add `speech: { transcription: { model: ggml-base.en.bin }, synthesis: { voice: en_US-lessac-medium } }` to gateway.yaml.",
  ),
  busy: retry(503, "Repeat the request after Retry-After seconds: the queue is full, or every model slot is in use."),
  load_failing: retry(503, "Repair its file or settings; POST /v1/models/load or /api/reconcile retries at once."),
  engine_missing: stall(
    503,
    "Run `model-gateway engine install llama`, `whisper` or `sherpa`, or set the path of an installed engine.",
  ),
  engine_refused: wait(500, "Correct the settings or the file that the engine names."),
  engine_failed: retry(503, "See the message and the log, which has the engine's output."),
  shutting_down: retry(503, "Repeat the request later: the gateway is stopping."),
  wait_timeout: retry(504, "See GET /status: the change stays desired and continues."),
  state_unwritable: wait(500, "Make the state folder writable; nothing was changed."),
  preset_unwritable: wait(500, "Make router.preset.ini readable, or delete it."),
  preset_foreign: stall(500, "Correct the lines of router.preset.ini that the router cannot parse.", "PresetInvalid"),
  hub_unreachable: wait(502, "Check the network, or HF_ENDPOINT."),
  hub_denied: stall(403, "Accept the repository's terms on the hub and set HF_TOKEN to a token that may read it."),
  hub_not_found: stall(404, "Check the repository's name and revision; a private one needs HF_TOKEN."),
  hub_rate_limited: wait(429, "Repeat the request later; a token in HF_TOKEN raises the hub's rate limit."),
  mirror_busy: wait(503, "Wait: the mirror is still pulling the file; it is fetched from there afterwards."),
  quant_not_found: stall(404, "Use a tag that the repository has; the message lists them."),
  quant_ambiguous: stall(409, "Use the file name as the tag: OWNER/NAME:FILE without .gguf."),
  checksum_mismatch: retry(502, "Pull the model again: its bytes differ from the hub's checksum; nothing was linked."),
  cache_read_only: stall(409, "Ask the gateway that writes the shared cache: this one runs with --pulls off."),
  disk_full: wait(507, "Free disk space for the model cache, or the file in the message, which has the missing bytes."),
  too_large: stall(
    507,
    "Use a smaller context or quant, as the message says, or raise the limits by `memory` in gateway.yaml.",
  ),
  cache_unwritable: wait(500, "Make the model cache writable, or choose another with HF_HUB_CACHE."),
  source_missing: wait(404, "Put the file in place, or correct the model's `source`."),
  not_a_model: stall(400, "Use another file: this one is not a GGUF model.", "InvalidModelFile"),
  cancelled: retry(499, "Repeat the request if it is still needed."),
};

export type ErrorCode = keyof typeof rows;

export const errorCatalog = Object.fromEntries(
  Object.entries(rows).map(([code, row]) => [code, { reason: camelCase(code), ...row }]),
) as Readonly<Record<ErrorCode, ErrorKind>>;

export function isErrorCode(code: unknown): code is ErrorCode {
  return typeof code === "string" && Object.hasOwn(errorCatalog, code);
}

function camelCase(code: string): string {
  return code.replace(/(?:^|_)([a-z])/g, (_all, letter: string) => letter.toUpperCase());
}
