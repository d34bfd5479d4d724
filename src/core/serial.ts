// Runs tasks one after another. Pure.

export type Serial = <T>(task: () => Promise<T>) => Promise<T>;

/** Each task starts when the one before has ended, also by an error, and its outcome goes to its own caller. */
export function createSerial(): Serial {
  let last: Promise<unknown> = Promise.resolve();
  return (task) => {
    const outcome = last.then(task);
    last = outcome.catch(() => undefined);
    return outcome;
  };
}
