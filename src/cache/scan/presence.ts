// Whether an empty model cache is empty, or the place where a disk with models is mounted at other times. Mistaking one for the
// other would pull everything again, onto the wrong disk. Writes nothing.

/** What this gateway once put into the cache, and where that was. */
export interface StoredModels {
  readonly count: number;
  /** As `doubt` has places; null: it is not known. */
  readonly place: string | null;
}

export type CachePresence = ReturnType<typeof createCachePresence>;

const wayOut = "; if its models were deleted on purpose, POST /api/reconcile?cacheGone=true has them fetched again";

export function createCachePresence(cacheDir: string, stored: () => StoredModels) {
  let seen: { readonly place: string; readonly repos: number } | null = null;
  let believed = false;

  function doubtAbsent(): string | null {
    if (believed) return null;
    if (seen) return `the model cache ${cacheDir} is gone (ENOENT): put it back${wayOut}`;
    if (stored().count === 0) return null;
    return `the model cache ${cacheDir} is gone, with models in it that this gateway put there: put it back${wayOut}`;
  }

  return {
    /**
     * Why the cache is taken for unknown; null if it is not. `place`: device and number of the folder, null if there is none;
     * `repos`: how many repositories it has.
     */
    doubt: (place: string | null, repos: number): string | null => {
      if (place === null) return doubtAbsent();
      if (repos === 0 && !believed) {
        const { count, place: storedAt } = stored();
        const hadModels = seen ? seen.repos > 0 : count > 0;
        if (hadModels && (seen?.place ?? storedAt) !== place)
          return `the model cache ${cacheDir} is empty and not the folder that models were in: its disk seems to be unmounted${wayOut}`;
      }
      if (repos > 0) believed = false;
      seen = { place, repos };
      return null;
    },
    /** A person confirms that it is as it seems. */
    believe: (): void => {
      believed = true;
    },
  };
}
