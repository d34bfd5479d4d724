// Members of requests that a variant of a model may set: those of llama-server (build 11669) that shape an answer. Others may be set
// too, as the next engine may have more of them; a name that is nearly one of these is a slip, which the engine would ignore.

const numbers =
  "temperature top_k top_p min_p top_n_sigma typical_p xtc_probability xtc_threshold dynatemp_range dynatemp_exponent " +
  "adaptive_target adaptive_decay mirostat mirostat_tau mirostat_eta repeat_penalty repeat_last_n presence_penalty " +
  "frequency_penalty dry_multiplier dry_base dry_allowed_length dry_penalty_last_n seed max_tokens max_completion_tokens " +
  "max_output_tokens n_predict n_keep n_probs min_keep n_indent t_max_predict_ms top_logprobs top_n embd_normalize " +
  "thinking_budget_tokens reasoning_budget_tokens";

const others =
  "stop stop_sequences dry_sequence_breakers logit_bias ignore_eos samplers grammar json_schema response_format lora " +
  "chat_template_kwargs reasoning_format reasoning_effort reasoning_in_content reasoning_budget_message thinking " +
  "parallel_tool_calls parse_tool_calls tools tool_choice add_generation_prompt continue_final_message instructions system " +
  "cache_prompt return_tokens logprobs post_sampling_probs timings_per_token backend_sampling speculative user metadata " +
  "truncate dimensions encoding_format";

/** A member's schema by its name. */
export const requestMembers: ReadonlyMap<string, object> = new Map([
  ...numbers.split(" ").map((name) => [name, { type: "number" }] as const),
  ...others.split(" ").map((name) => [name, {}] as const),
]);

/** What no variant sets, and why. */
export const reservedMembers: ReadonlyMap<string, string> = new Map(
  (
    [
      ["the variant's name stands for it", "model"],
      ["it is the request's own", "messages prompt input input_prefix input_suffix stream stream_options"],
      ["variants share the process of their model: set ctxSize of the model", "ctx_size num_ctx"],
      ["set keepAlive of the model", "keep_alive"],
    ] as const
  ).flatMap(([why, names]) => names.split(" ").map((name) => [name, why] as const)),
);
