// Several small requests to one loaded model under one lease, each answered whole. For what is computed and not written:
// generations have ../exchange.ts.

import { GatewayError } from "../../core/errors.ts";
import type { CachedModel } from "../../plan/observed.ts";
import type { Lease } from "../../scheduler/requests.ts";
import type { ModelWishes } from "../auth/within-scope.ts";
import { askInstance, type EngineAnswer } from "../proxy/ask-instance.ts";
import { withCause } from "../proxy/exchange.ts";
import type { ExchangeDeps } from "../proxy/generation.ts";
import type { PromptPermit } from "../proxy/prompt-queue.ts";
import { isRefusal, type UpstreamRequest } from "../proxy/upstream.ts";
import { encodeJson, largeBytes } from "../server/long-texts.ts";

export type CallEngine = (path: string, body: object) => Promise<EngineAnswer>;

export interface EngineCalls extends Required<ModelWishes> {
  /** The parsed body of the request. */
  readonly source: unknown;
  /** Aborted when the client left. */
  readonly signal: AbortSignal;
}

const attempts = 3;

/** Errors: those of `ChatContext.acquire`, `upstream_failed`, `shutting_down`, and what `use` throws. */
export async function withModel<T>(
  deps: ExchangeDeps,
  model: CachedModel,
  { keepAlive, contextSize, source, signal }: EngineCalls,
  use: (call: CallEngine) => Promise<T>,
): Promise<T> {
  const permit = await deps.prompts.enter(model.upstreamId, largeBytes(source), signal);
  try {
    for (let attempt = 1; ; attempt++) {
      const lease =
        deps.chatContext.tryAcquire(model, contextSize) ?? (await deps.chatContext.acquire(model, contextSize, signal));
      deps.scheduler.keep(model.upstreamId, keepAlive);
      try {
        return await use((path, body) => call(deps, lease, signal, permit, { path, body: encodeJson(body, source) }));
      } catch (error) {
        // Its process ended between our looking and our asking: the next instance is asked.
        if (attempt === attempts || !(error instanceof GatewayError) || !isRefusal(error)) throw error;
      } finally {
        lease.release();
      }
      await deps.scheduler.replace(lease.instance);
    }
  } finally {
    permit?.end();
  }
}

async function call(
  { upstream }: ExchangeDeps,
  lease: Lease,
  signal: AbortSignal,
  permit: PromptPermit | null,
  request: Pick<UpstreamRequest, "path" | "body">,
): Promise<EngineAnswer> {
  try {
    const asked = permit ? { ...request, onRead: permit.send(signal) } : request;
    return await askInstance(upstream, lease.instance, asked, signal);
  } catch (error) {
    throw error instanceof GatewayError ? withCause(error, lease) : error;
  }
}
