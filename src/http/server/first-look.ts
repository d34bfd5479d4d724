// Before the first pass of a start, document and machine are unknown: no client gets a 404 for a model then, nor `speech_off`.
import type { FastifyInstance } from "fastify";
import type { Loop } from "../../reconcile/loop.ts";
import { whileOpen } from "../../scheduler/while-open.ts";
import { clientLeft } from "./client-left.ts";

export interface FirstLook {
  isOver(): boolean;
  /** Throws `shutting_down`, `cancelled`, and what the loop's waiting does where it takes too long. */
  over(left: AbortSignal): Promise<void>;
}

export function createFirstLook(loop: Loop, options: { timeoutMs: number; stopping: AbortSignal }): FirstLook {
  return {
    isOver: () => loop.last() !== null,
    over: (left) =>
      whileOpen(options.stopping, left, async (signal) => {
        await loop.waitFor({ generation: 0, timeoutMs: options.timeoutMs, signal, test: () => true });
      }),
  };
}

/** For the requests of this scope. */
export function waitForFirstLook(app: FastifyInstance, look: FirstLook): void {
  app.addHook("onRequest", (_request, reply, done) => {
    if (look.isOver()) return done();
    look.over(clientLeft(reply)).then(() => done(), done);
  });
}
