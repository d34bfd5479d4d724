// Which context sizes the engine can run, and which one a model has. Pure.

/** Tokens. llama-server rounds a context up to a multiple of it; a process that is given 1 ends while loading. Seen on build 11669. */
export const smallestContext = 256;

/** The size to set where `asked` is asked for; less only for a model that was trained for less. */
export function runnableContext(asked: number, trained: number | null): number {
  return Math.max(asked, Math.min(smallestContext, trained ?? smallestContext));
}

/** What is set, which the engine caps at the trained size and divides among slots; else what it chose, or would. Null if unknown. */
export function contextInForce(set: number | null, trained: number | null, running: number | null): number | null {
  if (set === null) return running ?? trained;
  return Math.min(set, trained ?? set, running ?? set);
}
