// Questions in the background: one at a time, each once while it is open. Pure.

export function createJobs(options: {
  /** One has ended. */
  readonly onDone: () => void;
  readonly onError: (error: unknown) => void;
}) {
  let waiting: { readonly key: string; readonly work: () => Promise<void> }[] = [];
  let current: string | null = null;
  let isClosed = false;

  const count = (): number => waiting.length + (current === null ? 0 : 1);

  async function run(): Promise<void> {
    for (let next = waiting.shift(); next && !isClosed; next = waiting.shift()) {
      current = next.key;
      await next.work().catch(options.onError);
      current = null;
      if (!isClosed) options.onDone();
    }
  }

  return {
    count,
    /** `isUrgent`: before all that wait. */
    add: (key: string, work: () => Promise<void>, isUrgent = false): void => {
      if (isClosed || key === current) return;
      const known = waiting.find((job) => job.key === key);
      if (known && !isUrgent) return;
      waiting = waiting.filter((job) => job !== known);
      const job = { key, work };
      if (isUrgent) waiting.unshift(job);
      else waiting.push(job);
      if (current === null && waiting.length === 1) void run();
    },
    /** What waits is dropped. */
    close: (): void => {
      isClosed = true;
      waiting = [];
    },
  };
}
