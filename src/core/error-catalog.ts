// The catalog of everything that can go wrong, and what the loop and an HTTP client do about it.
// Pure data.

/**
 * What the reconcile loop does with a failed action: `retry` with backoff and give up after some tries; `wait`: try for
 * ever, as the cause lies outside and goes by itself; `stall` at once, until somebody changes something.
 */
export type Reaction = "retry" | "wait" | "stall";

interface ErrorKind {
  /** HTTP status of a request that fails with it. */
  readonly status: number;
  readonly reaction: Reaction;
  /** CamelCase reason used in conditions. */
  readonly reason: string;
  /** What a person does about it. */
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
    hint: "Set it in gateway.yaml, which names files of this machine. A call can keep the value, or take it out.",
  },
  forbidden_origin: {
    status: 403,
    reaction: "stall",
    reason: "ForbiddenOrigin",
    hint: "Call the gateway by a loopback name or address, and not from a page of another origin.",
  },
  scope_missing: { status: 403, reaction: "stall", reason: "ScopeMissing", hint: "Use a license key of scope `all`." },
  not_found: { status: 404, reaction: "stall", reason: "NotFound", hint: "The README lists the routes." },
  model_not_found: {
    status: 404,
    reaction: "stall",
    reason: "ModelNotFound",
    hint: "GET /v1/models lists the models; add the missing one to gateway.yaml to have it pulled.",
  },
  voice_not_found: {
    status: 404,
    reaction: "stall",
    reason: "VoiceNotFound",
    hint: "GET /api/tts/voices/search?q=TEXT finds the ids of the official voices.",
  },
  transcription_model_not_found: {
    status: 404,
    reaction: "stall",
    reason: "TranscriptionModelNotFound",
    hint: "GET /api/stt/models/search?q=TEXT finds the names of the official models.",
  },
  not_capable: {
    status: 400,
    reaction: "stall",
    reason: "NotCapable",
    hint: "The model cannot do that; POST /api/show lists what it can.",
  },
  method_not_allowed: {
    status: 405,
    reaction: "stall",
    reason: "MethodNotAllowed",
    hint: "The Allow header names the methods of this path.",
  },
  suspended: {
    status: 409,
    reaction: "stall",
    reason: "Suspended",
    hint: "The document says `suspend: true`: the change is noted, and made when that is taken out.",
  },
  precondition_failed: {
    status: 412,
    reaction: "stall",
    reason: "PreconditionFailed",
    hint: "The document changed since it was read: read it again and repeat the change.",
  },
  upload_stalled: {
    status: 408,
    reaction: "retry",
    reason: "UploadStalled",
    hint: "The engine does one upload at a time, so each has to keep coming once its turn has begun. Send it again.",
  },
  body_too_large: {
    status: 413,
    reaction: "stall",
    reason: "BodyTooLarge",
    hint: "Send less; what a chat may have, --body-limit sets.",
  },
  sound_too_long: {
    status: 413,
    reaction: "stall",
    reason: "SoundTooLong",
    hint: "Send the sound in parts; what the engine may take of the memory for one, --transcription-memory sets.",
  },
  unsupported_media_type: {
    status: 415,
    reaction: "stall",
    reason: "UnsupportedMediaType",
    hint: "Send Content-Type: application/json.",
  },
  internal: { status: 500, reaction: "retry", reason: "InternalError", hint: "This is a defect: see the log." },
  model_load_failed: {
    status: 500,
    reaction: "retry",
    reason: "LoadFailed",
    hint: "The message has the router's last words; a file that is no GGUF or too little memory are the usual causes.",
  },
  not_supported: {
    status: 501,
    reaction: "stall",
    reason: "NotSupported",
    hint: "This gateway does not do that.",
  },
  upstream_failed: {
    status: 502,
    reaction: "retry",
    reason: "UpstreamFailed",
    hint: "The engine broke off; the gateway starts it again by itself. Repeat the request.",
  },
  router_unavailable: {
    status: 503,
    reaction: "retry",
    reason: "RouterUnavailable",
    hint: "The router is starting or failing: GET /status says which.",
  },
  too_few_workers: {
    status: 503,
    reaction: "wait",
    reason: "TooFewWorkers",
    hint: "Start the missing RPC workers, or lower rpc.minWorkers; GET /status tells what is the matter with each.",
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
    hint: "Too many requests wait already, or every place is taken: repeat this one after the seconds that Retry-After names.",
  },
  load_failing: {
    status: 503,
    reaction: "retry",
    reason: "LoadFailing",
    hint: "The model failed to load and rests for a while. Mend its file or its settings; POST /v1/models/load or POST /api/reconcile has it tried at once.",
  },
  engine_missing: {
    status: 503,
    reaction: "stall",
    reason: "EngineMissing",
    hint: "Run `model-gateway engine install llama`, `whisper` or `sherpa`, or name an engine of your own by its setting.",
  },
  engine_failed: {
    status: 503,
    reaction: "retry",
    reason: "EngineFailed",
    hint: "The message has the line that says why; the log has the rest of the engine's output.",
  },
  shutting_down: { status: 503, reaction: "retry", reason: "ShuttingDown", hint: "The gateway is stopping." },
  wait_timeout: {
    status: 504,
    reaction: "retry",
    reason: "WaitTimeout",
    hint: "The change stays desired and goes on; GET /status shows how far it is.",
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
    hint: "Make router.preset.ini a file that can be read, or delete it.",
  },
  preset_foreign: {
    status: 500,
    reaction: "stall",
    reason: "PresetInvalid",
    hint: "router.preset.ini has lines that the router cannot read; correct or remove them.",
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
    hint: "Ask again in a while: the hub, or the gateway on its behalf, takes no more now; a token in HF_TOKEN has higher limits.",
  },
  quant_not_found: {
    status: 404,
    reaction: "stall",
    reason: "QuantNotFound",
    hint: "Take a tag that the repository has; the message lists them.",
  },
  quant_ambiguous: {
    status: 409,
    reaction: "stall",
    reason: "QuantAmbiguous",
    hint: "Name the file itself as the tag: OWNER/NAME:FILE without .gguf.",
  },
  checksum_mismatch: {
    status: 502,
    reaction: "retry",
    reason: "ChecksumMismatch",
    hint: "The bytes received are not the ones the hub announced; nothing was linked.",
  },
  disk_full: {
    status: 507,
    reaction: "wait",
    reason: "DiskFull",
    hint: "Free some room on the disk of the model cache, or of the file that the message names; it says how much is missing, where that is known.",
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
    hint: "Put the file there, or correct the model's `source`.",
  },
  not_a_model: {
    status: 400,
    reaction: "stall",
    reason: "InvalidModelFile",
    hint: "Name another file: this one is no GGUF model.",
  },
  cancelled: { status: 499, reaction: "retry", reason: "Cancelled", hint: "It is no longer wanted." },
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof errorCatalog;

export function isErrorCode(code: unknown): code is ErrorCode {
  return typeof code === "string" && Object.hasOwn(errorCatalog, code);
}
