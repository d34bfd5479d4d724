// Watches the model cache's folder and the files of the document's models.
import { watchFiles, watchPlace } from "../observe/file-watch.ts";
import type { Loop } from "../reconcile/loop.ts";

const placeCheckMs = 2_000;
const fileCheckMs = 1_000;

/** Wakes the loop when the folder comes or goes, or a file changes, until the signal aborts. */
export function watchCache(cacheDir: string, loop: Loop, signal: AbortSignal): void {
  const watches = [
    watchPlace(cacheDir, placeCheckMs, () => loop.wake("model cache")),
    watchFiles({
      everyMs: fileCheckMs,
      last: loop.last,
      onModel: () => loop.wake("model files"),
      onSource: loop.retry,
    }),
  ];
  signal.addEventListener("abort", () => watches.forEach((end) => end()), { once: true });
}
