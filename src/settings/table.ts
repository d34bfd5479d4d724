// Every setting as data: for the help text, the README and the reader in settings.ts.

interface SettingRow {
  /** Without dashes. */
  readonly flag: string;
  readonly variable: string;
  /** As the README shows it. */
  readonly fallback: string;
  readonly meaning: string;
}

export const settingRows = [
  {
    flag: "host",
    variable: "GATEWAY_HOST",
    fallback: "127.0.0.1",
    meaning: "Address to listen on; one that other machines reach only with a license key.",
  },
  { flag: "port", variable: "GATEWAY_PORT", fallback: "8484", meaning: "Port to listen on; 0 takes a free one." },
  {
    flag: "state",
    variable: "GATEWAY_STATE",
    fallback: "./state",
    meaning:
      "Folder for the desired document, the preset file and the engines. A global install uses the platform's state folder.",
  },
  { flag: "config", variable: "GATEWAY_CONFIG", fallback: "STATE/gateway.yaml", meaning: "The watched document." },
  {
    flag: "llama-server",
    variable: "LLAMA_SERVER",
    fallback: "PATH, then STATE/engines",
    meaning: "The engine's executable.",
  },
  {
    flag: "install-engine",
    variable: "GATEWAY_INSTALL_ENGINE",
    fallback: "true",
    meaning: "Install the engine at the start when there is none.",
  },
  {
    flag: "preset-allow",
    variable: "GATEWAY_PRESET_ALLOW",
    fallback: "",
    meaning:
      "Further llama-server options that a model's `preset` may set, separated by commas. Every client that may change the document can then set them.",
  },
  {
    flag: "models-max",
    variable: "GATEWAY_MODELS_MAX",
    fallback: "4",
    meaning: "Models loaded at once; the least recently used idle one makes room, unless the document pins it.",
  },
  {
    flag: "queue-limit",
    variable: "GATEWAY_QUEUE_LIMIT",
    fallback: "256",
    meaning: "Requests per model, waiting and under way together; a further one is answered 503 `busy`.",
  },
  {
    flag: "transfers",
    variable: "GATEWAY_TRANSFERS",
    fallback: "1",
    meaning: "Models pulled at once; what speech needs is pulled beside them.",
  },
  {
    flag: "resync",
    variable: "GATEWAY_RESYNC",
    fallback: "60",
    meaning: "Seconds between two looks at the world without an occasion.",
  },
  {
    flag: "drain-timeout",
    variable: "GATEWAY_DRAIN_TIMEOUT",
    fallback: "30",
    meaning: "Seconds to wait for answers in flight before a model is unloaded.",
  },
  {
    flag: "load-timeout",
    variable: "GATEWAY_LOAD_TIMEOUT",
    fallback: "600",
    meaning: "Seconds that a model may take to load, and that a request waits for a place for it.",
  },
  {
    flag: "start-timeout",
    variable: "GATEWAY_START_TIMEOUT",
    fallback: "60",
    meaning: "Seconds that the router may take to start, and a request waits for it.",
  },
  {
    flag: "stop-grace",
    variable: "GATEWAY_STOP_GRACE",
    fallback: "10",
    meaning:
      "Seconds from asking a process to end to ending it; as long do answers under way go on when the gateway stops.",
  },
  {
    flag: "silence-limit",
    variable: "GATEWAY_SILENCE_LIMIT",
    fallback: "20",
    meaning: "Seconds without an answer after which a running router counts as hanging and is restarted.",
  },
  {
    flag: "wait-timeout",
    variable: "GATEWAY_WAIT_TIMEOUT",
    fallback: "60",
    meaning: "Seconds that a call with ?wait=true waits.",
  },
  {
    flag: "body-limit",
    variable: "GATEWAY_BODY_LIMIT",
    fallback: "67108864",
    meaning: "Bytes that a chat's body may have. Other routes take 256 KiB.",
  },
  {
    flag: "header-limit",
    variable: "GATEWAY_HEADER_LIMIT",
    fallback: "16384",
    meaning: "Bytes that a request's address and headers may have together.",
  },
  {
    flag: "header-timeout",
    variable: "GATEWAY_HEADER_TIMEOUT",
    fallback: "60",
    meaning: "Seconds in which a request's headers must have come.",
  },
  {
    flag: "request-timeout",
    variable: "GATEWAY_REQUEST_TIMEOUT",
    fallback: "300",
    meaning: "Seconds in which a request, with its body, must have come. An answer may take as long as it does.",
  },
  {
    flag: "idle-timeout",
    variable: "GATEWAY_IDLE_TIMEOUT",
    fallback: "72",
    meaning: "Seconds that a connection stays open between two requests.",
  },
  {
    flag: "write-stall",
    variable: "GATEWAY_WRITE_STALL",
    fallback: "600",
    meaning:
      "Seconds that a client may leave unread what it is sent; then its answer is cut. 3 s while others wait for the model.",
  },
  {
    flag: "max-connections",
    variable: "GATEWAY_MAX_CONNECTIONS",
    fallback: "2048",
    meaning:
      "Connections open at once. For a new one the longest idle one is closed; where all are being answered, further requests get 503 `busy`, except /livez and /readyz.",
  },
  {
    flag: "event-listeners",
    variable: "GATEWAY_EVENT_LISTENERS",
    fallback: "256",
    meaning: "Readers of /api/events at once; a further one is answered 503 `busy`.",
  },
  {
    flag: "hub-token-file",
    variable: "GATEWAY_HUB_TOKEN_FILE",
    fallback: "",
    meaning: "File with the access token of the hub; wins over HF_TOKEN and HF_TOKEN_PATH.",
  },
  {
    flag: "allow-host",
    variable: "GATEWAY_ALLOWED_HOSTS",
    fallback: "",
    meaning: "Further Host names to answer to, separated by commas.",
  },
  {
    flag: "cors-origin",
    variable: "GATEWAY_CORS_ORIGINS",
    fallback: "",
    meaning: "Origins (https://HOST) whose web pages may call the gateway, separated by commas.",
  },
  {
    flag: "native-prefix",
    variable: "GATEWAY_NATIVE_PREFIX",
    fallback: "/alpha/api",
    meaning: "Path of the family that speaks Ollama's API; it is at /api too.",
  },
  {
    flag: "compat-prefix",
    variable: "GATEWAY_COMPAT_PREFIX",
    fallback: "/beta/v1",
    meaning: "Path of the family that speaks OpenAI's API; it is at /v1 too.",
  },
  {
    flag: "chat-context",
    variable: "GATEWAY_CHAT_CONTEXT",
    fallback: "apply",
    meaning: "What a chat's own context size does: apply it, grow only, or ignore.",
  },
  {
    flag: "keep-alive",
    variable: "GATEWAY_KEEP_ALIVE",
    fallback: "-1",
    meaning:
      "How long an idle model stays loaded where no request says: 5m, 1h30m, seconds; -1 is until its place is needed.",
  },
  {
    flag: "whisper-server",
    variable: "WHISPER_SERVER",
    fallback: "PATH, then STATE/engines",
    meaning: "The transcription engine's executable.",
  },
  {
    flag: "speech-engine",
    variable: "GATEWAY_SPEECH_ENGINE",
    fallback: "auto",
    meaning:
      "What speaks: piper, embedded (sherpa-onnx), or auto: a Python that has Piper where there is one, else embedded.",
  },
  {
    flag: "piper",
    variable: "PIPER",
    fallback: "python3, python or piper in PATH",
    meaning: "A Python that has Piper, or a `piper` command.",
  },
  {
    flag: "speech-idle",
    variable: "GATEWAY_SPEECH_IDLE",
    fallback: "600",
    meaning: "Seconds after which a speech engine that nobody uses is ended.",
  },
  {
    flag: "upload-limit",
    variable: "GATEWAY_UPLOAD_LIMIT",
    fallback: "536870912",
    meaning: "Bytes that an upload to be transcribed may have.",
  },
  {
    flag: "upload-stall",
    variable: "GATEWAY_UPLOAD_STALL",
    fallback: "15",
    meaning:
      "Seconds in which an upload whose turn has begun must bring 16 KiB more; else it is ended, as others wait behind it.",
  },
  {
    flag: "upload-time",
    variable: "GATEWAY_UPLOAD_TIME",
    fallback: "300",
    meaning:
      "Seconds in which an upload whose turn has begun must be whole while others wait behind it; else it is ended.",
  },
  {
    flag: "transcription-memory",
    variable: "GATEWAY_TRANSCRIPTION_MEMORY",
    fallback: "4294967296",
    meaning:
      "Bytes by which the transcription engine may grow over one upload, and at most half of the machine's memory; then it is ended, and the upload told so.",
  },
  {
    flag: "worker-interval",
    variable: "GATEWAY_WORKER_INTERVAL",
    fallback: "5",
    meaning: "Seconds between two looks at an RPC worker.",
  },
  {
    flag: "worker-stable",
    variable: "GATEWAY_WORKER_STABLE",
    fallback: "10",
    meaning:
      "Seconds that a lost RPC worker has to answer before it is used again; doubles with each loss within ten minutes.",
  },
  {
    flag: "worker-stall",
    variable: "GATEWAY_WORKER_STALL",
    fallback: "60",
    meaning:
      "Seconds that a model on RPC workers may compute without a sign of life before one of them counts as hanging.",
  },
  {
    flag: "rpc-server",
    variable: "GGML_RPC_SERVER",
    fallback: "PATH, then STATE/engines",
    meaning: "The executable that `model-gateway worker` runs.",
  },
  {
    flag: "log-level",
    variable: "GATEWAY_LOG_LEVEL",
    fallback: "info",
    meaning: "trace, debug, info, warn, error or silent.",
  },
] as const satisfies readonly SettingRow[];
