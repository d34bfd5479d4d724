// The catalog of error codes: HTTP status, condition reason, reaction of the reconciler, hint. Pure data.

/**
 * What the reconciler does with a failed action. `retry`: with backoff, stalled after some tries. `wait`: retry for ever, because the
 * cause lies outside. `stall`: at once, until the document or the engine changes.
 */
export type Reaction = "retry" | "wait" | "stall";

interface ErrorKind {
  /** HTTP status of a request that fails with it. */
  readonly status: number;
  readonly reaction: Reaction;
  /** CamelCase reason used in conditions. */
  readonly reason: string;
  /** The remedy, an imperative. */
  readonly hint: string;
}

export const errorCatalog = {
  invalid_request: {
    status: 400,
    reaction: "stall",
    reason: "InvalidRequest",
    hint: "Correct the request; the message names the field.",
  },
  invalid_document: {
    status: 400,
    reaction: "stall",
    reason: "InvalidDocument",
    hint: "Correct the keys that the message lists; nothing was changed.",
  },
  unauthorized: {
    status: 401,
    reaction: "stall",
    reason: "Unauthorized",
    hint: "Send a license key: Authorization: Bearer KEY, X-License-Key or x-api-key, or /k/KEY before the path.",
  },
  file_only: {
    status: 403,
    reaction: "stall",
    reason: "FileOnly",
    hint: "Set it in gateway.yaml: only the file may name files of this machine. A request may keep or remove the value.",
  },
  forbidden_origin: {
    status: 403,
    reaction: "stall",
    reason: "ForbiddenOrigin",
    hint: "Use a loopback name or address, and no page of another origin.",
  },
  scope_missing: { status: 403, reaction: "stall", reason: "ScopeMissing", hint: "Use a license key of scope `all`." },
  not_found: { status: 404, reaction: "stall", reason: "NotFound", hint: "GET /openapi.json lists the routes." },
  model_not_found: {
    status: 404,
    reaction: "stall",
    reason: "ModelNotFound",
    hint: "Use a model of GET /v1/models, or add it to gateway.yaml.",
  },
  voice_not_found: {
    status: 404,
    reaction: "stall",
    reason: "VoiceNotFound",
    hint: "Use an id from GET /api/tts/voices/search?q=TEXT.",
  },
  transcription_model_not_found: {
    status: 404,
    reaction: "stall",
    reason: "TranscriptionModelNotFound",
    hint: "Use a name from GET /api/stt/models/search?q=TEXT.",
  },
  not_capable: {
    status: 400,
    reaction: "stall",
    reason: "NotCapable",
    hint: "Use another model: POST /api/show lists the capabilities.",
  },
  method_not_allowed: {
    status: 405,
    reaction: "stall",
    reason: "MethodNotAllowed",
    hint: "Use a method of the Allow header.",
  },
  suspended: {
    status: 409,
    reaction: "stall",
    reason: "Suspended",
    hint: "Remove `suspend: true` from the document: the change is stored and applied then.",
  },
  precondition_failed: {
    status: 412,
    reaction: "stall",
    reason: "PreconditionFailed",
    hint: "Read the document again and repeat the change: it has changed since.",
  },
  upload_stalled: {
    status: 408,
    reaction: "retry",
    reason: "UploadStalled",
    hint: "Send it again without pauses: the engine takes one upload at a time.",
  },
  body_too_large: {
    status: 413,
    reaction: "stall",
    reason: "BodyTooLarge",
    hint: "Send less; --body-limit sets the limit of a chat.",
  },
  sound_too_long: {
    status: 413,
    reaction: "stall",
    reason: "SoundTooLong",
    hint: "Send the sound in parts; --transcription-memory sets how much memory one may take.",
  },
  unsupported_media_type: {
    status: 415,
    reaction: "stall",
    reason: "UnsupportedMediaType",
    hint: "Send Content-Type: application/json.",
  },
  internal: { status: 500, reaction: "retry", reason: "InternalError", hint: "Report this defect with the log." },
  model_load_failed: {
    status: 500,
    reaction: "retry",
    reason: "LoadFailed",
    hint: "The message has the router's last output; usual causes are a file that is not GGUF and too little memory.",
  },
  not_supported: {
    status: 501,
    reaction: "stall",
    reason: "NotSupported",
    hint: "Use another route: this gateway does not support it.",
  },
  upstream_failed: {
    status: 502,
    reaction: "retry",
    reason: "UpstreamFailed",
    hint: "Repeat the request: the engine failed and is restarted.",
  },
  router_unavailable: {
    status: 503,
    reaction: "retry",
    reason: "RouterUnavailable",
    hint: "See GET /status: the router is starting or failing.",
  },
  too_few_workers: {
    status: 503,
    reaction: "wait",
    reason: "TooFewWorkers",
    hint: "Start the missing RPC workers, or lower rpc.minWorkers; GET /status has the condition of each.",
  },
  speech_off: {
    status: 503,
    reaction: "stall",
    reason: "SpeechOff",
    hint: "Add `speech: { transcription: { model: ggml-base.en.bin }, synthesis: { voice: en_US-lessac-medium } }` to gateway.yaml.",
  },
  busy: {
    status: 503,
    reaction: "retry",
    reason: "Busy",
    hint: "Repeat the request after the seconds in Retry-After: the queue is full, or every model slot is in use.",
  },
  load_failing: {
    status: 503,
    reaction: "retry",
    reason: "LoadFailing",
    hint: "Repair the model's file or its settings; POST /v1/models/load or POST /api/reconcile retries at once.",
  },
  engine_missing: {
    status: 503,
    reaction: "stall",
    reason: "EngineMissing",
    hint: "Run `model-gateway engine install llama`, `whisper` or `sherpa`, or set the path of an installed engine.",
  },
  engine_failed: {
    status: 503,
    reaction: "retry",
    reason: "EngineFailed",
    hint: "See the message and the log, which has the engine's output.",
  },
  shutting_down: {
    status: 503,
    reaction: "retry",
    reason: "ShuttingDown",
    hint: "Repeat the request later: the gateway is stopping.",
  },
  wait_timeout: {
    status: 504,
    reaction: "retry",
    reason: "WaitTimeout",
    hint: "See GET /status: the change stays desired and continues.",
  },
  state_unwritable: {
    status: 500,
    reaction: "wait",
    reason: "StateUnwritable",
    hint: "Make the state folder writable; nothing was changed.",
  },
  preset_unwritable: {
    status: 500,
    reaction: "wait",
    reason: "PresetUnwritable",
    hint: "Make router.preset.ini readable, or delete it.",
  },
  preset_foreign: {
    status: 500,
    reaction: "stall",
    reason: "PresetInvalid",
    hint: "Correct or remove the lines of router.preset.ini that the router cannot parse.",
  },
  hub_unreachable: {
    status: 502,
    reaction: "wait",
    reason: "HubUnreachable",
    hint: "Check the network, or HF_ENDPOINT.",
  },
  hub_denied: {
    status: 403,
    reaction: "stall",
    reason: "HubDenied",
    hint: "Accept the repository's terms on the hub and set HF_TOKEN to a token that may read it.",
  },
  hub_not_found: {
    status: 404,
    reaction: "stall",
    reason: "HubNotFound",
    hint: "Check the repository's name and revision; a private one needs HF_TOKEN.",
  },
  hub_rate_limited: {
    status: 429,
    reaction: "wait",
    reason: "HubRateLimited",
    hint: "Repeat the request later; a token in HF_TOKEN raises the hub's rate limit.",
  },
  quant_not_found: {
    status: 404,
    reaction: "stall",
    reason: "QuantNotFound",
    hint: "Use a tag that the repository has; the message lists them.",
  },
  quant_ambiguous: {
    status: 409,
    reaction: "stall",
    reason: "QuantAmbiguous",
    hint: "Use the file name as the tag: OWNER/NAME:FILE without .gguf.",
  },
  checksum_mismatch: {
    status: 502,
    reaction: "retry",
    reason: "ChecksumMismatch",
    hint: "Pull the model again: the bytes differ from the hub's checksum, and nothing was linked.",
  },
  disk_full: {
    status: 507,
    reaction: "wait",
    reason: "DiskFull",
    hint: "Free disk space for the model cache, or for the file in the message, which has the missing bytes if known.",
  },
  cache_unwritable: {
    status: 500,
    reaction: "wait",
    reason: "CacheUnwritable",
    hint: "Make the model cache writable, or choose another with HF_HUB_CACHE.",
  },
  source_missing: {
    status: 404,
    reaction: "wait",
    reason: "SourceMissing",
    hint: "Put the file in place, or correct the model's `source`.",
  },
  not_a_model: {
    status: 400,
    reaction: "stall",
    reason: "InvalidModelFile",
    hint: "Use another file: this one is not a GGUF model.",
  },
  cancelled: { status: 499, reaction: "retry", reason: "Cancelled", hint: "Repeat the request if it is still needed." },
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof errorCatalog;

export function isErrorCode(code: unknown): code is ErrorCode {
  return typeof code === "string" && Object.hasOwn(errorCatalog, code);
}
