// Answers that are kept for a moment: who asks the same within it gets the same, also while the first is still on its way.

interface Entry<T> {
  readonly answer: Promise<T>;
  /** ms */
  readonly until: number;
}

/** A failure is not kept. The oldest answers go first. */
export function rememberAnswers<T>(options: {
  readonly forMs: number;
  readonly atMost: number;
  readonly now: () => number;
}): (key: string, ask: () => Promise<T>) => Promise<T> {
  const entries = new Map<string, Entry<T>>();
  return (key, ask) => {
    const now = options.now();
    for (const [old, { until }] of entries) {
      // In the order in which they were asked for, so in that of their ends.
      if (until > now && entries.size < options.atMost) break;
      entries.delete(old);
    }
    const known = entries.get(key);
    if (known) return known.answer;
    const entry: Entry<T> = { answer: ask(), until: now + options.forMs };
    entries.set(key, entry);
    entry.answer.catch(() => {
      if (entries.get(key) === entry) entries.delete(key);
    });
    return entry.answer;
  };
}
