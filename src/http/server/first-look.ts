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

/** For the requests of this scope. Errors: `shutting_down`, `cancelled`, and those of the loop's waiting. */
export function waitForFirstLook(app: FastifyInstance, { loop, timeoutMs, stopping }: FirstLook): void {
  app.addHook("onRequest", (_request, reply, done) => {
    if (loop.last() !== null) return done();
    whileOpen(stopping, clientLeft(reply), (signal) =>
      loop.waitFor({ generation: 0, timeoutMs, signal, test: () => true }),
    ).then(() => done(), done);
  });
}
