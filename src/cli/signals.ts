// An orderly end: what signals do.

/** 128 and the signal's number, as shells count. */
const exitCodes = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;

/** ms in which a signal again counts as once: Ctrl+C under npm comes from the terminal and from npm. */
const echoMs = 200;

/** At the first signal runs `stop` and exits, with 1 where that fails; a second one exits at once, which kills our processes. */
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
