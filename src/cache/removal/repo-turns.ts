// Who may work in a repository's folder: pulls and imports, or one garbage collection.
import { unlessLeft } from "../../core/unless-left.ts";

export type RepoTurns = ReturnType<typeof createRepoTurns>;

export function createRepoTurns() {
  // Pulls of a repository take turns among themselves, in cache/download/fetch.ts; a collection runs beside none of them.
  const pulls = new Map<string, number>();
  const collections = new Map<string, Promise<void>>();
  return {
    /** For a pull: waits while a collection runs; call the result when done. Rejects with the signal's reason. */
    take: async (repo: string, signal: AbortSignal): Promise<() => void> => {
      const key = repo.toLowerCase();
      for (let other = collections.get(key); other; other = collections.get(key))
        await unlessLeft(other, signal).catch(() => signal.throwIfAborted());
      pulls.set(key, (pulls.get(key) ?? 0) + 1);
      return () => {
        const left = (pulls.get(key) ?? 1) - 1;
        if (left > 0) pulls.set(key, left);
        else pulls.delete(key);
      };
    },
    /** For a collection: at once, or null while the repository is in use. */
    tryTake: (repo: string): (() => void) | null => {
      const key = repo.toLowerCase();
      if (pulls.has(key) || collections.has(key)) return null;
      let end = (): void => undefined;
      collections.set(
        key,
        new Promise((resolve) => {
          end = resolve;
        }),
      );
      return () => {
        collections.delete(key);
        end();
      };
    },
    /** Repositories with a pull. */
    taken: (): readonly string[] => [...pulls.keys()],
  };
}
