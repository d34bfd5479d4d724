// A model to chat with under the context size that the chat carries: who asks for another one than is in force waits for a
// turn, has it put in force, and holds the model before the next one's change begins. The edit makes the change.

import type { Catalogue } from "../catalog/catalog.ts";
import { contextInForce, runnableContext } from "../core/context-size.ts";
import { GatewayError } from "../core/errors.ts";
import type { CachedModel } from "../plan/observed.ts";
import type { Admission, Lease } from "../scheduler/admission.ts";
import { settledOrLeft } from "../scheduler/change-signal.ts";
import { createSizeLine } from "../scheduler/size-line.ts";
import type { Ticket } from "../scheduler/tickets.ts";
import type { Edits } from "./edits.ts";

/** `apply`: it is put in force; `grow`: only where it is larger; `ignore`: never. */
export type ChatContextMode = "apply" | "grow" | "ignore";

export interface SizedLease extends Lease {
  /** Tokens of context that the model has while the lease lasts; null where nobody knows. */
  readonly contextSize: number | null;
}

export interface ChatContext {
  /**
   * A lease on the model, under the asked-for size where the mode says so: never above the trained context, nor below what
   * the engine can run. Without a size it runs under whatever is in force. Errors: those of {@link Admission.acquire} and of
   * {@link Edits.setContextSize}.
   */
  acquire(model: CachedModel, asked: number | undefined, signal: AbortSignal): Promise<SizedLease>;
}

/** After so many changes that somebody else undid at once, a chat runs under what is in force, and is told so. */
const mostChanges = 5;

export function createChatContext(options: {
  readonly mode: ChatContextMode;
  readonly catalogue: Pick<Catalogue, "view">;
  readonly edits: Pick<Edits, "setContextSize">;
  readonly admission: Pick<Admission, "acquire" | "enter">;
}): ChatContext {
  const { mode, catalogue, edits, admission } = options;
  const line = createSizeLine();

  /** Of a size that is set and what the engine gives: where it gives less (parallel slots), asking again would give no more. */
  function isEnough(size: number, set: number | null, given: number | null): boolean {
    if (size === set || size === given) return true;
    return mode === "grow" && size <= Math.max(set ?? 0, given ?? 0);
  }

  function isSet({ id }: CachedModel, size: number): boolean {
    const view = catalogue.view(id);
    return isEnough(size, view?.contextSet ?? null, view?.contextLength ?? null);
  }

  /** What the process itself was started with counts: the preset may have been written and not be in force yet. */
  function suits({ instance, contextSize }: SizedLease, size: number): boolean {
    return isEnough(size, instance.ctxSize, contextSize);
  }

  async function take(model: CachedModel, signal: AbortSignal, ticket?: Ticket): Promise<SizedLease> {
    const lease = await admission.acquire(model.upstreamId, signal, ticket);
    const { ctxSize, nCtx } = lease.instance;
    return { ...lease, contextSize: contextInForce(ctxSize, model.nCtxTrain, nCtx) };
  }

  /** Where it is set already it only waits until it is in force: in mode `grow` a smaller one must not be asked for. */
  async function putInForce(model: CachedModel, size: number, isUndone: boolean, signal: AbortSignal): Promise<void> {
    const set = isSet(model, size);
    if (set && !isUndone) return;
    const wanted = set ? (catalogue.view(model.id)?.contextSet ?? size) : size;
    await edits.setContextSize(model.id, wanted, { by: "http:chat", signal });
  }

  async function takeInTurn(model: CachedModel, size: number, signal: AbortSignal): Promise<SizedLease> {
    const ticket = admission.enter(model.upstreamId, "size");
    const place = line.join(model.id, size);
    try {
      await settledOrLeft(place.begun, signal);
      let change: Promise<void> | undefined;
      for (let count = 1; ; count++) {
        if (signal.aborted) throw new GatewayError("cancelled", "the client left");
        change = place.change((deserted) => putInForce(model, size, count > 1, deserted), change);
        await settledOrLeft(change, signal);
        const lease = await take(model, signal, ticket);
        if (suits(lease, size) || count === mostChanges) return lease;
        ticket.waitsFor("size");
        lease.release();
      }
    } finally {
      ticket.leave();
      place.leave();
    }
  }

  return {
    acquire: async (model, asked, signal) => {
      if (asked === undefined || mode === "ignore") return take(model, signal);
      const { nCtxTrain } = model;
      const size = runnableContext(Math.min(asked, nCtxTrain ?? asked), nCtxTrain);
      if (!line.isBusy(model.id) && isSet(model, size)) {
        const lease = await take(model, signal);
        if (suits(lease, size)) return lease;
        // It was loaded under another one, or somebody changed it while this one waited.
        lease.release();
      }
      return takeInTurn(model, size, signal);
    },
  };
}
