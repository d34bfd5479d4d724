// Wakes the loop when the model cache comes or goes, or a file of a model that the document names changes.
import { watchFiles, watchPlace } from "../observe/file-watch.ts";
import type { Loop } from "../reconcile/loop.ts";

const placeCheckMs = 2_000;
const fileCheckMs = 1_000;

/** Call the result to end the watches. */
export function watchCache(cacheDir: string, loop: Loop): () => void {
  const watches = [
    watchPlace(cacheDir, placeCheckMs, () => loop.wake("model cache")),
    watchFiles({
      everyMs: fileCheckMs,
      last: loop.last,
      onModel: () => loop.wake("model files"),
      onSource: loop.retry,
    }),
  ];
  return () => watches.forEach((end) => end());
}
