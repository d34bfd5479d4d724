// Looks again and again at what sends no events. Looks of the same interval are made in the same moment: at rest each wake-up of the
// process costs as much as what it is for.

/** ms between two looks: half of the interval of the engine's health check, which so needs no wake-up of its own. */
export const lookMs = 2_500;

/**
 * Calls `look` every `everyMs`, counted from the start of the process, without keeping it alive; call the result to stop. Not by the
 * clock: gateways that share a disk would all ask it at once.
 */
export function repeat(everyMs: number, look: () => void): () => void {
  let at = performance.now();
  let timer: NodeJS.Timeout;
  function goOn(): void {
    // A timer may fire a ms early.
    at = (Math.floor(Math.max(at, performance.now()) / everyMs) + 1) * everyMs;
    timer = setTimeout(() => {
      goOn();
      look();
    }, at - performance.now()).unref();
  }
  goOn();
  return () => clearTimeout(timer);
}
