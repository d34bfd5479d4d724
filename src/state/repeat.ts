// Looks at files again and again. Those that have the same interval are made at the same moment: to wake the process for each of
// them, 100 ms apart, cost a gateway at rest more processor time than the looks themselves.
import { steadyNow } from "../core/steady.ts";

/** Calls `look` at each multiple of `everyMs`, without keeping the process alive; call the result to stop. */
export function repeat(everyMs: number, look: () => void): () => void {
  let at = steadyNow();
  let timer: NodeJS.Timeout;
  function goOn(): void {
    // A timer may fire a ms early.
    at = (Math.floor(Math.max(at, steadyNow()) / everyMs) + 1) * everyMs;
    timer = setTimeout(() => {
      goOn();
      look();
    }, at - steadyNow()).unref();
  }
  goOn();
  return () => clearTimeout(timer);
}
