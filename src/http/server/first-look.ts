// Before the first pass of a start, document and machine are unknown: no client gets a 404 for a model then, nor `speech_off`.
import type { FastifyInstance } from "fastify";
import type { Loop } from "../../reconcile/loop.ts";
import { whileOpen } from "../../scheduler/while-open.ts";
import { clientLeft } from "./call.ts";

export interface FirstLook {
  readonly loop: Loop;
  readonly timeoutMs: number;
  readonly stopping: AbortSignal;
}

export function isLookedAt({ loop }: FirstLook): boolean {
  return loop.last() !== null;
}

/** For the requests of this scope. Errors: `shutting_down`, `cancelled`, and those of the loop's waiting. */
export function waitForFirstLook(app: FastifyInstance, firstLook: FirstLook): void {
  const { loop, timeoutMs, stopping } = firstLook;
  app.addHook("onRequest", (_request, reply, done) => {
    if (isLookedAt(firstLook)) return done();
    whileOpen(stopping, clientLeft(reply), (signal) =>
      loop.waitFor({ generation: 0, timeoutMs, signal, test: () => true }),
    ).then(() => done(), done);
  });
}
