// Notices that the model cache's folder went, came back, or is another one: no event tells of a disk that is unplugged, and the
// next look at the world may be a minute away. Reads nothing in it.
import { stat } from "node:fs/promises";

/** Looks every `everyMs`; call the result to end it. */
export function watchPlace(folder: string, everyMs: number, onChange: () => void): () => void {
  let last: string | null | undefined;
  let isLooking = false;

  async function look(): Promise<void> {
    if (isLooking) return;
    isLooking = true;
    const place = await stat(folder).then(
      ({ dev, ino }) => `${dev}:${ino}`,
      () => null,
    );
    isLooking = false;
    if (last !== undefined && place !== last) onChange();
    last = place;
  }

  const timer = setInterval(() => void look(), everyMs);
  timer.unref();
  void look();
  return () => clearInterval(timer);
}
