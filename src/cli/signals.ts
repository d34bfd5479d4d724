// An orderly end: what signals do.

/** 128 and the signal's number, as shells count. */
const exitCodes = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;

/**
 * ms in which the same signal again counts as once: Ctrl+C under npm comes twice, from the terminal and from npm, and so
 * does the end of a terminal, from the kernel and from the shell.
 */
const echoMs = 200;

/**
 * Runs `stop` at the first SIGINT, SIGTERM or SIGHUP, and exits with 0, or with 1 where that fails. A second signal exits at
 * once, with 128 and its number; processes of ours that still run are killed then.
 */
export function stopOnSignals(stop: () => Promise<void>, onError: (error: unknown) => void): void {
  let begunAt: number | null = null;
  for (const [name, code] of Object.entries(exitCodes)) {
    process.on(name, () => {
      const now = performance.now();
      if (begunAt !== null) {
        if (now - begunAt > echoMs) process.exit(code);
        return;
      }
      begunAt = now;
      stop().then(
        () => process.exit(0),
        (error: unknown) => {
          onError(error);
          process.exit(1);
        },
      );
    });
  }
}
