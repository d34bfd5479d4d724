// Undoes what a test set up, last first, whatever happens. Why not `t.after` as it is: node:test runs those in the order
// of registration, so a folder would go before the gateway that writes in it, and leaves out the rest once one has thrown.

/** A test, or what stands for one. */
export interface Ending {
  after(fn: () => Promise<void>): void;
}

type Step = () => unknown;

const stepsOf = new WeakMap<Ending, Step[]>();

export function cleanUp(t: Ending, step: Step): void {
  const known = stepsOf.get(t);
  if (known) {
    known.push(step);
    return;
  }
  const steps = [step];
  stepsOf.set(t, steps);
  t.after(async () => {
    const failures: unknown[] = [];
    for (const undo of steps.toReversed()) {
      try {
        await undo();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  });
}

/** For what is no test: undoes what the work set up once it has ended. */
export async function withCleanUp<T>(work: (t: Ending) => Promise<T>): Promise<T> {
  let undo = async (): Promise<void> => undefined;
  try {
    return await work({ after: (fn) => void (undo = fn) });
  } finally {
    await undo();
  }
}
