// Questions in the background: one at a time, each once while it is open. One that nothing waits for begins a moment later, and not
// beside a load: its process takes a core, and the load of an edited model took a fifth longer for it.

interface Job {
  readonly key: string;
  readonly isUrgent: boolean;
  readonly work: () => Promise<void>;
  /** Resolves once it has ended; never if it is dropped. */
  readonly ended: Promise<void>;
  readonly end: () => void;
}

/** ms after an edit or an answer until a question begins that nothing waits for: a load may begin until then. */
const laterMs = 100;

export function createJobs(options: {
  /** A model is being loaded. */
  readonly isLoading: () => boolean;
  /** One has ended. */
  readonly onDone: () => void;
  readonly onError: (error: unknown) => void;
}) {
  let waiting: readonly Job[] = [];
  let current: Job | null = null;
  let isClosed = false;
  let timer: NodeJS.Timeout | undefined;

  const count = (): number => waiting.length + (current === null ? 0 : 1);

  function runLater(): void {
    timer ??= setTimeout(() => {
      timer = undefined;
      void run((job) => job.isUrgent || !options.isLoading());
    }, laterMs).unref();
  }

  async function run(mayBegin: (job: Job) => boolean): Promise<void> {
    while (current === null && waiting[0] && mayBegin(waiting[0])) {
      [current, waiting] = [waiting[0], waiting.slice(1)];
      await current.work().catch(options.onError);
      current.end();
      current = null;
      if (!isClosed) options.onDone();
    }
    if (current === null && waiting.length > 0) runLater();
  }

  return {
    count,
    /** `isUrgent`: at once, before all that wait. Resolves once it has ended. */
    add: (key: string, work: () => Promise<void>, isUrgent = false): Promise<void> => {
      if (key === current?.key) return current.ended;
      const known = waiting.find((job) => job.key === key);
      if (isClosed || (known && !isUrgent)) return known?.ended ?? Promise.resolve();
      const job = known ? { ...known, isUrgent } : newJob(key, work, isUrgent);
      waiting = waiting.filter((other) => other !== known);
      waiting = isUrgent ? [job, ...waiting] : [...waiting, job];
      void run(({ isUrgent: mayBegin }) => mayBegin);
      return job.ended;
    },
    /** What waits is dropped. */
    close: (): void => {
      isClosed = true;
      waiting = [];
      clearTimeout(timer);
    },
  };
}

function newJob(key: string, work: () => Promise<void>, isUrgent: boolean): Job {
  let end = (): void => undefined;
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  return { key, isUrgent, work, ended, end };
}
