// Which loads fail for their settings, by what the engine printed. Lines of the real engine.
import assert from "node:assert/strict";
import { test } from "node:test";
import { causeIn, isMemoryShortage, isSettingsFault } from "../../../src/core/load-output.ts";

const cases: readonly [what: string, lines: readonly string[], isFault: boolean, isShort: boolean][] = [
  [
    "a context that cannot be made",
    ["0.00.074.027 E cmn  common_init_: failed to create context with model 'm'"],
    true,
    false,
  ],
  ["a chat template", ["error: the supplied chat template is not supported: {%bad"], true, false],
  ["a value", ['error while handling argument "--cache-type-k": Unsupported cache type: nonsense'], true, false],
  ["an assertion", ["/src/ggml.c:1: GGML_ASSERT(ne % 32 == 0) failed"], true, false],
  ["an exception", ["terminate called after throwing an instance of 'std::bad_alloc'"], false, true],
  [
    "memory",
    ["0.1 E ggml_backend_cpu_buffer_type_alloc_buffer: failed to allocate buffer of size 99", "0.2 E srv: exiting"],
    false,
    true,
  ],
  [
    "a device's memory",
    ["ggml_backend_cuda_buffer_type_alloc_buffer: cudaMalloc failed: out of memory", "1 E x: y"],
    false,
    true,
  ],
  [
    "a killed process",
    ["0.00.126.205 I srv    load_model: loading model 'm.gguf'", "0.1 W srv: no error here"],
    false,
    false,
  ],
];

for (const [what, lines, isFault, isShort] of cases)
  test(`the end of a load: ${what}`, () => {
    assert.deepEqual([isSettingsFault(lines), isMemoryShortage(lines)], [isFault, isShort]);
  });

test("the cause of a failed load is its first complaint, not what came of it", () => {
  const aborted = [
    "0.00.064.923 I llama_fit_params: printing estimated memory",
    "0.00.072.813 E llama_init_from_model: quantized V cache requires flash_attn to be enabled",
    "terminate called after throwing an instance of 'std::runtime_error'",
    "  what():  failed to create llama_context from model",
  ];
  assert.equal(causeIn(aborted), "llama_init_from_model: quantized V cache requires flash_attn to be enabled");
  assert.equal(causeIn([...aborted.slice(2), ...aborted.slice(0, 2)]), causeIn(aborted), "the log comes late");
  assert.equal(causeIn(aborted.slice(2)), "failed to create llama_context from model");
  assert.equal(
    causeIn(["0.1 E srv    load_model: failed to load model, 'm'"]),
    "load_model: failed to load model, 'm'",
  );
  assert.equal(causeIn(aborted.slice(0, 1)), null);
});
