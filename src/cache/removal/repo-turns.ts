// One at a time with a repository's folder: a pull or import, or collecting. Knows nothing of either.

export interface RepoTurns {
  /** Waits for whoever is at it; call the result when done. Rejects with the signal's reason. */
  take(repo: string, signal: AbortSignal): Promise<() => void>;
  /** The same at once; null where somebody is at it. */
  tryTake(repo: string): (() => void) | null;
  /** Repositories that somebody is at. */
  taken(): readonly string[];
}

interface Turn {
  users: number;
  readonly over: Promise<void>;
}

export function createRepoTurns(): RepoTurns {
  // Two pulls of a repository may run side by side, as ever; only collecting wants it for itself.
  const pulls = new Map<string, Turn & { end(): void }>();
  const collections = new Map<string, Turn & { end(): void }>();

  function enter(turns: Map<string, Turn & { end(): void }>, key: string): () => void {
    const known = turns.get(key);
    if (known) known.users++;
    else {
      let end = (): void => undefined;
      const over = new Promise<void>((resolve) => {
        end = resolve;
      });
      turns.set(key, { users: 1, over, end });
    }
    let inside = true;
    return () => {
      const turn = turns.get(key);
      if (!inside || !turn) return;
      inside = false;
      if (--turn.users > 0) return;
      turns.delete(key);
      turn.end();
    };
  }

  return {
    take: async (repo, signal) => {
      const key = repo.toLowerCase();
      for (let other = collections.get(key); other; other = collections.get(key)) await overOrAborted(other, signal);
      return enter(pulls, key);
    },
    tryTake: (repo) => {
      const key = repo.toLowerCase();
      return pulls.has(key) || collections.has(key) ? null : enter(collections, key);
    },
    taken: () => [...pulls.keys()],
  };
}

function overOrAborted({ over }: Turn, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const giveUp = (): void => reject(signal.reason as Error);
    if (signal.aborted) return giveUp();
    signal.addEventListener("abort", giveUp, { once: true });
    void over.then(() => {
      signal.removeEventListener("abort", giveUp);
      resolve();
    });
  });
}
