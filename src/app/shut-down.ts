// The order in which a gateway ends: answers first, then the door, then the engines, then what is remembered. Each step is
// bounded, and a step that fails keeps no later one from being done.
import type { FastifyInstance } from "fastify";
import { GatewayError } from "../core/errors.ts";
import type { FileSource } from "../desired/file-source.ts";
import type { OpenAnswers } from "../http/server/open-answers.ts";
import type { Core } from "./core.ts";

export interface ShutDownDeps {
  readonly core: Core;
  readonly app: FastifyInstance;
  readonly answers: OpenAnswers;
  readonly files: FileSource;
  readonly stopGraceMs: number;
  /** From now on nothing new is taken, and whoever waits for a model is turned away. */
  readonly stopping: AbortController;
  /** Answers in flight end in their family's error frame, event streams with a word why. */
  readonly cutOff: AbortController;
  unlock(): Promise<void>;
}

/** ms for error frames and last words to be on their way. */
const lastWordsMs = 250;

/** Errors: the first one of a step that failed; all steps have been tried. */
export async function shutDown(deps: ShutDownDeps): Promise<void> {
  const { app, answers, stopGraceMs, stopping, cutOff } = deps;
  const { engine, loop, executor, router, speech, hub, lastUsed, rpc } = deps.core;
  const failures: unknown[] = [];
  const step = async (...works: readonly (() => unknown)[]): Promise<void> => {
    for (const outcome of await Promise.allSettled(works.map(async (work) => work())))
      if (outcome.status === "rejected") failures.push(outcome.reason);
  };

  stopping.abort();
  deps.core.scheduler.shutDown();
  rpc.workers.stop();
  deps.core.damage.close();
  // The engine's installation may be under way.
  const acting = step(deps.files.close, loop.stop, executor.close, engine.settled).then(() => step(hub.close));
  const grace = AbortSignal.timeout(stopGraceMs);
  // An action may hang on an engine, so it is not waited for longer than the answers are.
  await Promise.all([answers.settled(grace), isOverWithin(acting, stopGraceMs)]);
  cutOff.abort();
  await answers.settled(AbortSignal.timeout(lastWordsMs));
  await step(() => app.close());
  const endEngines = (): Promise<void> => step(router.close, speech.close);
  await endEngines();
  if (!(await isOverWithin(acting, stopGraceMs)))
    failures.push(new GatewayError("internal", `work under way did not end: ${namesOf(executor.running())}`));
  // One that was being started meanwhile.
  await endEngines();
  await step(lastUsed.close);
  await step(deps.core.stateFolder.stop);
  await step(deps.unlock);
  if (failures.length > 0) throw failures[0];
}

function namesOf(running: ReturnType<Core["executor"]["running"]>): string {
  return running.map(({ action }) => action.message).join("; ") || "a look at the world";
}

async function isOverWithin(work: Promise<void>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}
