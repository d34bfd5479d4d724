// Calls that wait for a pass that shows something.
import { GatewayError } from "../core/errors.ts";
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

interface Waiter<Pass> {
  readonly check: (pass: Pass) => void;
  readonly fail: (error: GatewayError) => void;
}

export interface Waiters<Pass> {
  /** Resolves with the first pass after number `begun` that has seen the generation and satisfies the test. */
  add(wait: PassWait<Pass>, begun: number): Promise<Pass>;
  check(pass: Pass): void;
  /** Fails all of them with `shutting_down`, and those that come later. */
  end(): void;
}

export function createWaiters<Pass extends SeenPass>(): Waiters<Pass> {
  const waiters = new Set<Waiter<Pass>>();
  const stopping = (): GatewayError => new GatewayError("shutting_down", "the gateway is stopping");
  let ended = false;
  return {
    add: ({ generation, timeoutMs, signal, test }, begun) =>
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
        const waiter: Waiter<Pass> = {
          check: (pass) => {
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
        const onAbort = (): void => fail(new GatewayError("cancelled", "the client left"));
        const isLate = (): void => fail(new GatewayError("wait_timeout", `not reached within ${timeoutMs} ms`));
        const deadline = setTimeout(isLate, Math.min(timeoutMs, longestTimerMs));
        if (ended) return fail(stopping());
        if (signal?.aborted) return onAbort();
        signal?.addEventListener("abort", onAbort, { once: true });
        waiters.add(waiter);
      }),
    check: (pass) => {
      for (const waiter of waiters) waiter.check(pass);
    },
    end: () => {
      ended = true;
      for (const waiter of waiters) waiter.fail(stopping());
    },
  };
}
