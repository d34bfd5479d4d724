// Keys of llama-swap without a counterpart in a document, and what there is instead.

const ownProcesses = "the gateway starts, probes and ends llama-server itself";

/** Of a model. */
export const modelLosses: Readonly<Record<string, string>> = {
  cmdStop: ownProcesses,
  proxy: ownProcesses,
  checkEndpoint: ownProcesses,
  env: "all engines have one environment; for GPUs set `device`, `main-gpu` or `tensor-split` in `preset`",
  useModelName: "the engine gets the name that it has for the model",
  unlisted: "every model is listed",
  name: "model lists have ids and aliases",
  description: "model lists have ids and aliases",
  metadata: "model lists have what is in the model's file",
  capabilities: "model lists have what is in the model's file",
  compat: "there is none",
  timeouts: "times are flags of the gateway, for all models",
  sendLoadingState: "requests wait while a model is loaded; `model-gateway ps` shows it",
  unloadTimeout: "use the flag --stop-grace, for all models",
  healthCheckTimeout: "use the flag --load-timeout, for all models",
};

/** Of the whole file. */
export const fileLosses: Readonly<Record<string, string>> = {
  healthCheckTimeout: "use the flag --load-timeout",
  unloadTimeout: "use the flag --stop-grace",
  logLevel: "use the flag --log-level",
  logTimeFormat: "log lines are JSON, with the time in ms",
  logToStdout: "`model-gateway logs` has the engines' output",
  logRequests: "`/metrics` counts requests",
  metricsMaxInMemory: "`/metrics` is for Prometheus",
  captureBuffer: "requests are not recorded",
  store: "requests are not recorded",
  ui: "the status page has no settings",
  performance: "`/metrics` is for Prometheus",
  startPort: "the gateway takes free ports for its engines",
  sendLoadingState: "requests wait while a model is loaded; `model-gateway ps` shows it",
  includeAliasesInList: "there is none",
  apiKeys: "create license keys with `model-gateway key create NAME`",
  profiles: "there is none",
  selectors: "there is none",
  peers: "the gateway runs models of this machine and of RPC workers",
  upstream: "there is none",
  hooks: "load models with `model-gateway load`",
  matrix: "models are loaded beside each other as far as memory and --models-max allow",
};
