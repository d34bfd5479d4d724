// Unfinished files of the cache that this process is writing or counts on: no cleaning takes them.

const held = new Map<string, number>();

/** Marks paths until the answer is called. A path may be held more than once. */
export function holdPaths(paths: Iterable<string>): () => void {
  const own = new Set(paths);
  for (const path of own) held.set(path, (held.get(path) ?? 0) + 1);
  return () => {
    for (const path of own) {
      const left = (held.get(path) ?? 1) - 1;
      if (left === 0) held.delete(path);
      else held.set(path, left);
    }
    own.clear();
  };
}

export function isHeld(path: string): boolean {
  return held.has(path);
}

/** For a pull that holds it: whether another pull of this process does too. */
export function isHeldTwice(path: string): boolean {
  return (held.get(path) ?? 0) > 1;
}
