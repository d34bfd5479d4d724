// The llama-server options that a document's `preset` may set, by kind and by their long names. Everything else is refused:
// what names a path, URL, host, command, repository, log or tool is on no list, and neither is an option that is new.

/** The engine takes further spellings; none of them can be on a list of these. */
export const presetKeyPattern = "^[a-z][a-z0-9-]+$";

const words = (text: string): readonly string[] => text.trim().split(/\s+/);

export const presetKinds = {
  sampling: words(`
    seed temp temperature top-k top-p min-p top-nsigma top-n-sigma typical typical-p xtc-probability xtc-threshold
    adaptive-target adaptive-decay dynatemp-range dynatemp-exp mirostat mirostat-lr mirostat-ent repeat-last-n
    repeat-penalty presence-penalty frequency-penalty dry-multiplier dry-base dry-allowed-length dry-penalty-last-n
    dry-sequence-breaker logit-bias ignore-eos samplers sampler-seq sampling-seq backend-sampling grammar json-schema
    predict n-predict reverse-prompt`),
  context: words(`
    keep swa-full context-shift no-context-shift kv-unified no-kv-unified kv-unified-per-slot ctx-checkpoints
    swa-checkpoints checkpoint-min-step rope-scaling rope-scale rope-freq-base rope-freq-scale yarn-orig-ctx
    yarn-ext-factor yarn-attn-factor yarn-beta-slow yarn-beta-fast`),
  batching: words("batch-size ubatch-size parallel cont-batching no-cont-batching"),
  threads: words(`
    threads threads-batch cpu-mask cpu-mask-batch cpu-range cpu-range-batch cpu-strict cpu-strict-batch prio prio-batch
    poll poll-batch numa`),
  offload: words(`
    gpu-layers n-gpu-layers device main-gpu split-mode tensor-split override-tensor cpu-moe n-cpu-moe n-cpu-ffn
    moe-cache-mib fit fit-target fit-ctx kv-offload no-kv-offload op-offload no-op-offload no-host repack no-repack
    load-mode lazy-mode mmap no-mmap mlock direct-io no-direct-io check-tensors warmup no-warmup`),
  cache: words(`
    flash-attn cache-type-k cache-type-v cache-ram cache-reuse cache-prompt no-cache-prompt cache-idle-slots
    no-cache-idle-slots slot-prompt-similarity defrag-thold`),
  speculative: words(`
    spec-type spec-draft-n-max spec-draft-n-min spec-draft-n-ubatch spec-draft-p-min draft-p-min spec-draft-p-split
    draft-p-split spec-draft-sampling spec-draft-backend-sampling no-spec-draft-backend-sampling spec-draft-ngl
    gpu-layers-draft n-gpu-layers-draft spec-draft-device device-draft spec-draft-override-tensor
    override-tensor-draft spec-draft-cpu-moe cpu-moe-draft spec-draft-n-cpu-moe spec-draft-ncmoe n-cpu-moe-draft
    spec-draft-type-k cache-type-k-draft spec-draft-type-v cache-type-v-draft ctx-size-draft spec-draft-threads
    threads-draft spec-draft-threads-batch threads-batch-draft spec-draft-cpu-mask cpu-mask-draft
    spec-draft-cpu-mask-batch cpu-mask-batch-draft spec-draft-cpu-range cpu-range-draft spec-draft-cpu-strict
    cpu-strict-draft spec-draft-cpu-strict-batch cpu-strict-batch-draft spec-draft-prio prio-draft
    spec-draft-prio-batch prio-batch-draft spec-draft-poll poll-draft spec-draft-poll-batch poll-batch-draft
    spec-ngram-mod-n-min spec-ngram-mod-n-max spec-ngram-mod-n-match spec-ngram-simple-size-n
    spec-ngram-simple-size-m spec-ngram-simple-min-hits spec-ngram-map-k-size-n spec-ngram-map-k-size-m
    spec-ngram-map-k-min-hits spec-ngram-map-k4v-size-n spec-ngram-map-k4v-size-m spec-ngram-map-k4v-min-hits`),
  chat: words(`
    chat-template chat-template-kwargs jinja no-jinja reasoning reasoning-format reasoning-effort reasoning-budget
    reasoning-budget-message reasoning-preserve no-reasoning-preserve prefill-assistant no-prefill-assistant
    skip-chat-parsing no-skip-chat-parsing special spm-infill`),
  embeddings: words("embedding embeddings rerank reranking pooling embd-normalize"),
  images: words(`
    image-min-tokens image-max-tokens mtmd-batch-max-tokens video-fps video-timestamp-interval mmproj-auto no-mmproj
    no-mmproj-auto mmproj-offload no-mmproj-offload mmproj-device`),
} as const;

export type PresetKind = keyof typeof presetKinds;

/** The kind of each option on the list. */
export const presetOptions: ReadonlyMap<string, PresetKind> = new Map(
  Object.entries(presetKinds).flatMap(([kind, options]) =>
    options.map((option): [string, PresetKind] => [option, kind as PresetKind]),
  ),
);
