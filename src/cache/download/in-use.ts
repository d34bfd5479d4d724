// Which unfinished files of the cache this process is writing or counts on, so that cleaning leaves them alone.

const held = new Map<string, number>();

/** Marks a path until the answer is called. A path may be held more than once. */
export function holdPath(path: string): () => void {
  held.set(path, (held.get(path) ?? 0) + 1);
  let over = false;
  return () => {
    if (over) return;
    over = true;
    const left = (held.get(path) ?? 1) - 1;
    if (left === 0) held.delete(path);
    else held.set(path, left);
  };
}

/** The same for several paths, each once. */
export function holdPaths(paths: readonly string[]): () => void {
  const releases = [...new Set(paths)].map(holdPath);
  return () => {
    for (const release of releases) release();
  };
}

export function isHeld(path: string): boolean {
  return held.has(path);
}

/** For one who holds it: whether somebody else does too. */
export function isHeldTwice(path: string): boolean {
  return (held.get(path) ?? 0) > 1;
}
