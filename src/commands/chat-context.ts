// A lease under the context size that a chat carries. A request for another size than is in force waits for its turn, has the
// size put in force, and has its lease before the next turn's change begins.
import type { Catalog } from "../catalog/catalog.ts";
import { contextInForce, runnableContext } from "../core/context-size.ts";
import type { Instance } from "../engines/llama/instances.ts";
import type { CachedModel } from "../plan/observed.ts";
import type { Lease } from "../scheduler/requests.ts";
import type { Scheduler } from "../scheduler/scheduler.ts";
import { ContextTurns } from "./context-turns.ts";
import type { Edits } from "./edits.ts";

/** `apply`: the size is put in force; `grow`: only a larger one; `ignore`: none. */
export type ChatContextMode = "apply" | "grow" | "ignore";

export type ChatContext = ReturnType<typeof createChatContext>;

/** Tokens of context that the model has in this process; null: unknown. */
export function contextOf(
  { nCtxTrain }: CachedModel,
  { ctxSize, nCtx }: Pick<Instance, "ctxSize" | "nCtx">,
): number | null {
  return contextInForce(ctxSize, nCtxTrain, nCtx);
}

/** After so many changes that other clients undid at once, a chat runs under the size in force, and its answer carries that. */
const mostChanges = 5;

interface ChatContextOptions {
  readonly mode: ChatContextMode;
  readonly catalog: Pick<Catalog, "view">;
  readonly edits: Pick<Edits, "setContextSize">;
  readonly scheduler: Pick<Scheduler, "tryAcquire" | "acquire" | "enter">;
  /** Errors: `too_large` for a size with which the model would never be loaded again. */
  readonly requireContext: (id: string, tokens: number) => Promise<void>;
}

export function createChatContext(options: ChatContextOptions) {
  const { mode, catalog, edits, scheduler } = options;

  /** Of a size that is set and what the engine gives: where it gives less (parallel slots), asking again would give no more. */
  function isEnough(size: number, set: number | null, given: number | null): boolean {
    if (size === set || size === given) return true;
    return mode === "grow" && size <= Math.max(set ?? 0, given ?? 0);
  }

  function isSet(id: string, size: number): boolean {
    const view = catalog.view(id);
    return isEnough(size, view?.contextSet ?? null, view?.contextLength ?? null);
  }

  /** What the process itself was started with counts: the preset may have been written and not be in force yet. */
  function suits({ instance }: Lease, model: CachedModel, size: number): boolean {
    return isEnough(size, instance.ctxSize, contextOf(model, instance));
  }

  function sizeFor({ nCtxTrain }: CachedModel, asked: number | undefined): number | null {
    if (asked === undefined || mode === "ignore") return null;
    return runnableContext(Math.min(asked, nCtxTrain ?? asked), nCtxTrain);
  }

  /** Null: the model was loaded under another size, or a change came in between. */
  function checked(lease: Lease | null, model: CachedModel, size: number): Lease | null {
    if (lease === null || suits(lease, model, size)) return lease;
    lease.release();
    return null;
  }

  /** Where a size is set already it only has to come into force: in mode `grow` a smaller one must not be asked for. */
  const turns = new ContextTurns(async (model, size, isRepeated, signal) => {
    const set = isSet(model, size);
    if (set && !isRepeated) return;
    const wanted = set ? (catalog.view(model)?.contextSet ?? size) : size;
    if (!set) await options.requireContext(model, wanted);
    await edits.setContextSize(model, wanted, { by: "http:chat", signal });
  });

  /** By the document; and no request waits for another size. */
  function isInForce({ id }: CachedModel, size: number): boolean {
    return !turns.isAsked(id) && isSet(id, size);
  }

  async function acquireInTurn(model: CachedModel, size: number, left: AbortSignal): Promise<Lease> {
    const rejected = new AbortController();
    const entrance = scheduler.enter(model.upstreamId, "size", (error) => rejected.abort(error));
    const signal = AbortSignal.any([left, rejected.signal]);
    const acquire = (): Promise<Lease> => scheduler.acquire(model.upstreamId, left, entrance);
    try {
      for (let count = 1; ; count++) {
        const lease = await turns.run({ model: model.id, size, isRepeated: count > 1 }, signal, acquire);
        if (count === mostChanges || suits(lease, model, size)) return lease;
        lease.release();
        entrance.again();
      }
    } catch (error) {
      throw rejected.signal.aborted ? rejected.signal.reason : error;
    } finally {
      entrance.leave();
    }
  }

  return {
    /** The fast path: a lease at once; null: the request has to wait, with `acquire`. */
    tryAcquire: (model: CachedModel, asked: number | undefined): Lease | null => {
      const size = sizeFor(model, asked);
      if (size === null) return scheduler.tryAcquire(model.upstreamId);
      return isInForce(model, size) ? checked(scheduler.tryAcquire(model.upstreamId), model, size) : null;
    },
    /** A lease under that size, at most the trained one and as the mode allows; without one under the size in force. */
    acquire: async (model: CachedModel, asked: number | undefined, signal: AbortSignal): Promise<Lease> => {
      const size = sizeFor(model, asked);
      if (size === null) return scheduler.acquire(model.upstreamId, signal);
      const lease = isInForce(model, size) ? await scheduler.acquire(model.upstreamId, signal) : null;
      return checked(lease, model, size) ?? acquireInTurn(model, size, signal);
    },
  };
}
