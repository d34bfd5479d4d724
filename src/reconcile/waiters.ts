// Calls that wait for a pass that shows something.
import { clientLeftError, GatewayError, stoppingError } from "../core/errors.ts";
import { longestTimerMs } from "../core/steady.ts";

interface SeenPass {
  readonly number: number;
  readonly desired: { readonly generation: number };
}

export interface PassWait<Pass> {
  readonly generation: number;
  /** Only a pass counts that begins after the call. */
  readonly fresh?: boolean;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  readonly test: (pass: Pass) => boolean;
}

/** `open`: what is still open, for the message of a wait that takes too long. */
export function createWaiters<Pass extends SeenPass>(open: () => string) {
  const waiters = new Set<{ check(pass: Pass): void; fail(error: GatewayError): void }>();
  let ended = false;
  return {
    /** Resolves with the first pass after number `begun` that has seen the generation and satisfies the test. */
    add: ({ generation, timeoutMs, signal, test }: PassWait<Pass>, begun: number): Promise<Pass> =>
      new Promise((resolve, reject) => {
        const leave = (): void => {
          clearTimeout(deadline);
          signal?.removeEventListener("abort", onAbort);
          waiters.delete(waiter);
        };
        const fail = (error: unknown): void => {
          leave();
          reject(error);
        };
        const waiter = {
          check: (pass: Pass): void => {
            if (pass.desired.generation < generation || pass.number <= begun) return;
            try {
              if (!test(pass)) return;
              leave();
              resolve(pass);
            } catch (error) {
              fail(error);
            }
          },
          fail,
        };
        const onAbort = (): void => fail(clientLeftError());
        const isLate = (): void =>
          fail(new GatewayError("wait_timeout", `not reached within ${timeoutMs} ms: ${open()}`));
        const deadline = setTimeout(isLate, Math.min(timeoutMs, longestTimerMs));
        if (ended) return fail(stoppingError());
        if (signal?.aborted) return onAbort();
        signal?.addEventListener("abort", onAbort, { once: true });
        waiters.add(waiter);
      }),
    check: (pass: Pass): void => {
      for (const waiter of waiters) waiter.check(pass);
    },
    /** Fails all of them with `shutting_down`, and those that come later. */
    end: (): void => {
      ended = true;
      for (const waiter of waiters) waiter.fail(stoppingError());
    },
  };
}
