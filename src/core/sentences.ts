// Puts the sentences of messages together. Pure.

/** Two sentences, whatever the first one ends in: an error's message has no full stop, a question keeps its mark. */
export function followedBy(first: string, next: string): string {
  return /[.?!]$/.test(first) ? `${first} ${next}` : `${first}. ${next}`;
}
