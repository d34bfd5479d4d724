// Tokens as the engine counts them, in the words of each family; the answers are llama-server's (build 11669), shortened.
import assert from "node:assert/strict";
import { test } from "node:test";
import { countTokens } from "../../../src/core/token-counts.ts";

const timings = '"timings":{"cache_n":29,"prompt_n":1,"prompt_ms":0.3,"predicted_n":4,"predicted_ms":0.2}';

function counted(text: string): readonly [prompt: number, completion: number] {
  let found: readonly [number, number] = [0, 0];
  const isCounted = countTokens(text, {
    addTokens: (prompt, completion) => {
      found = [prompt, completion];
    },
  });
  assert.equal(isCounted, found[0] > 0);
  return found;
}

const cases: readonly (readonly [what: string, text: string, prompt: number, completion: number])[] = [
  ["a whole chat", `"usage":{"completion_tokens":4,"prompt_tokens":30,"total_tokens":34},"id":"x",${timings}}`, 30, 4],
  ["a stream without usage", `data: {"choices":[],${timings}}\n\ndata: [DONE]\n\n`, 30, 4],
  [
    "usage alone",
    '"usage":{"completion_tokens":4,"prompt_tokens":30,"total_tokens":34,"prompt_tokens_details":{"cached_tokens":29}}',
    30,
    4,
  ],
  [
    "a response of OpenAI's",
    '"usage":{"input_tokens":30,"output_tokens":4,"total_tokens":34,"input_tokens_details":{"cached_tokens":29}}}',
    30,
    4,
  ],
  ["a message of Anthropic's", '"usage":{"cache_read_input_tokens":29,"input_tokens":1,"output_tokens":4}}', 30, 4],
  [
    "a stream of Anthropic's, whose first event has the prompt's",
    '"usage":{"cache_read_input_tokens":29,"input_tokens":1,"output_tokens":0}}}\n\n"usage":{"output_tokens":4}}\n\n',
    30,
    4,
  ],
  ["embeddings", '"usage":{"prompt_tokens":7,"total_tokens":7}}', 7, 0],
  [
    "timings with each token: the last ones",
    `"timings":{"cache_n":29,"prompt_n":1,"predicted_n":3}}\n\ndata: {${timings}}`,
    30,
    4,
  ],
  ["no count", '{"choices":[]}', 0, 0],
  ["a text that speaks of counts", String.raw`{"content":"\"prompt_tokens\":99, \"predicted_n\":98"}`, 0, 0],
  ["a count that is cut off", '"usage":{"prompt_tokens":', 0, 0],
];

for (const [what, text, prompt, completion] of cases)
  test(`tokens of ${what}`, () => assert.deepEqual(counted(text), [prompt, completion]));
