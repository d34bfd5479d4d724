// The tokens that the engine counted for an answer, read from the text of its end. Pure. A quote in a model's own text is escaped, so
// that no key matches there.

export interface TokenCounter {
  addTokens(prompt: number, completion: number): void;
}

/** In the words of llama.cpp, else of OpenAI or Anthropic. Of several counts of one kind the last one holds. */
export function countTokens(text: string, counter: TokenCounter): void {
  const predicted = numberAfter(text, '"predicted_n":');
  if (predicted !== null) {
    const read = (numberAfter(text, '"prompt_n":') ?? 0) + (numberAfter(text, '"cache_n":') ?? 0);
    return counter.addTokens(read, predicted);
  }
  const prompt = numberAfter(text, '"prompt_tokens":') ?? numberAfter(text, '"input_tokens":') ?? 0;
  const completion = numberAfter(text, '"completion_tokens":') ?? numberAfter(text, '"output_tokens":') ?? 0;
  // Anthropic's count of the prompt is without it.
  const cached = numberAfter(text, '"cache_read_input_tokens":') ?? 0;
  counter.addTokens(prompt + cached, completion);
}

const mostDigits = 12;

function numberAfter(text: string, key: string): number | null {
  const at = text.lastIndexOf(key);
  if (at < 0) return null;
  const start = at + key.length;
  const value = Number.parseInt(text.slice(start, start + mostDigits), 10);
  return Number.isNaN(value) ? null : value;
}
