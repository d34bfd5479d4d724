// One generation from lease to last byte: waits for the model, sends the request, passes the answer on through a family's
// translator, and ends in the family's error frame where the engine breaks off.
import type { FastifyReply } from "fastify";
import { type ChatContext, contextOf } from "../../commands/chat-context.ts";
import { GatewayError, toGatewayError } from "../../core/errors.ts";
import type { KeepAlive } from "../../core/keep-alive.ts";
import type { CachedModel } from "../../plan/observed.ts";
import type { Lease } from "../../scheduler/requests.ts";
import type { Scheduler } from "../../scheduler/scheduler.ts";
import {
  type Dialect,
  errorHeaders,
  frameOf,
  type RenderedError,
  renderEngineError,
  renderError,
} from "../server/errors.ts";
import { createRawReply, type RawReply } from "../server/raw-reply.ts";
import type { PromptPermit, PromptQueue } from "./prompt-queue.ts";
import { isRefusal, lengthOf, type Upstream } from "./upstream.ts";

/** How a family turns the engine's answer into its own. */
export interface Translator {
  /** The shape of its errors. */
  readonly family: Dialect;
  /** Headers for a stream; null for an answer that is sent whole, which can then still become a proper error. */
  begin(contentType: string): Record<string, string> | null;
  /** For a stream whose first byte is long in coming: headers, and what may be written any number of times meanwhile. */
  readonly waiting?: { readonly headers: Readonly<Record<string, string>>; readonly tick: string };
  /** What to write for a chunk; null writes nothing. */
  chunk(chunk: Buffer): Uint8Array | string | null;
  /** The number that an error frame gets, in a family whose events are numbered. */
  nextSequence?(): number;
  /** What to write last (the whole answer, where it is sent whole); an error where the answer was cut. */
  end(): Uint8Array | string | GatewayError | null;
}

export interface Generation {
  readonly model: CachedModel;
  readonly path: string;
  /** In pieces. */
  readonly body: readonly Uint8Array[];
  /** Whether the engine is asked for a stream. */
  readonly stream: boolean;
  readonly translator: Translator;
  /** The context size that the request carries. */
  readonly contextSize?: number | undefined;
  /** How long the model stays loaded after it. */
  readonly keepAlive?: KeepAlive;
}

export interface ExchangeDeps {
  readonly scheduler: Scheduler;
  readonly upstream: Upstream;
  readonly chatContext: ChatContext;
  readonly prompts: PromptQueue;
  /** The gateway stops: answers still in flight end in an error frame. */
  readonly cutOff: AbortSignal;
  readonly onFailure: (error: GatewayError, model: string) => void;
  /** How long a stream's client waits without a byte; the first one comes earlier. */
  readonly tickMs?: number;
  /** ms that a client may leave its answer unread while others wait for the model. */
  readonly unreadMs?: number;
}

const attempts = 3;
/**
 * A model may take longer to load than a client waits: editors give up on a silent answer after 30 s, proxies and people
 * sooner. Headers that are sent tie the answer to its status, so a wait that ends within seconds ends without them.
 */
const firstTickMs = 5_000;
const defaultTickMs = 12_000;

/** Short: it begins when the kernel's buffers are full, which takes a client that has not read for long. */
const defaultUnreadMs = 3_000;
/** ms between two checks whether the client reads its answer. */
const checkReadersMs = 500;

/** Takes the reply over from Fastify; resolves when the answer is through, whichever way. */
export async function runGeneration(deps: ExchangeDeps, reply: FastifyReply, generation: Generation): Promise<void> {
  reply.hijack();
  const raw = createRawReply(reply.raw);
  const left = new AbortController();
  raw.onLeave(() => left.abort());
  const waiting = tickWhileWaiting(raw, generation, deps.tickMs ?? defaultTickMs);
  let lease: Lease | null = null;
  let permit: PromptPermit | null = null;
  try {
    permit = await deps.prompts.enter(generation.model.upstreamId, lengthOf(generation.body), left.signal);
    for (let attempt = 1; ; attempt++) {
      const { model, contextSize: asked } = generation;
      lease = deps.chatContext.tryAcquire(model, asked) ?? (await deps.chatContext.acquire(model, asked, left.signal));
      if (generation.keepAlive) deps.scheduler.keep(model.upstreamId, generation.keepAlive);
      const contextSize = contextOf(model, lease.instance);
      const headers = contextSize === null ? {} : { "x-context-size": String(contextSize) };
      const outcome = await exchange(deps, lease, raw, left.signal, generation, permit, headers, waiting);
      if (outcome === "done") return;
      // Its process ended between our looking and our asking: nothing was answered, so the next instance is asked.
      lease.release();
      if (attempt === attempts)
        throw new GatewayError("upstream_failed", `${generation.model.id} does not accept requests`);
      await deps.scheduler.replace(lease.instance);
    }
  } catch (error) {
    if (left.signal.aborted) return;
    const failure = toGatewayError(error);
    if (failure.status >= 500) deps.onFailure(failure, generation.model.id);
    fail(raw, generation.translator, failure);
  } finally {
    waiting.over();
    lease?.release();
    permit?.end();
  }
}

interface Waiting {
  /** The answer begins. */
  over(): void;
}

function tickWhileWaiting(raw: RawReply, { stream, translator }: Generation, everyMs: number): Waiting {
  const { waiting } = translator;
  if (!stream || !waiting) return { over: () => undefined };
  let timer = setTimeout(tick, Math.min(firstTickMs, everyMs));
  function tick(): void {
    if (!raw.headersSent()) raw.head(200, waiting?.headers ?? {});
    raw.write(waiting?.tick ?? "");
    timer = setTimeout(tick, everyMs);
  }
  return { over: () => clearTimeout(timer) };
}

function exchange(
  { upstream, cutOff, scheduler, onFailure, unreadMs = defaultUnreadMs }: ExchangeDeps,
  lease: Lease,
  raw: RawReply,
  left: AbortSignal,
  generation: Generation,
  permit: PromptPermit | null,
  headers: Readonly<Record<string, string>>,
  waiting: Waiting,
): Promise<"done" | "refused"> {
  const { translator } = generation;
  return new Promise((resolve) => {
    let status = 0;
    let isAnswering = false;
    const errorText: Buffer[] = [];
    const over = new AbortController();
    const settle = (outcome: "done" | "refused"): void => {
      over.abort();
      resolve(outcome);
    };
    const request = permit ? { ...generation, onRead: permit.send(left) } : generation;
    const current = upstream.send(lease.instance, request, {
      start: (code, answered) => {
        status = code;
        waiting.over();
        if (code !== 200) return;
        const streamHeaders = translator.begin(String(answered["content-type"] ?? ""));
        if (streamHeaders && !raw.headersSent()) raw.head(200, { ...streamHeaders, ...headers });
      },
      data: (chunk) => {
        if (status !== 200) {
          errorText.push(chunk);
          return true;
        }
        isAnswering = true;
        const text = translator.chunk(chunk);
        return text === null ? true : raw.write(text);
      },
      end: () => {
        if (status === 200) finish(raw, translator, headers, (error) => withCause(error, lease));
        else refuse(raw, translator, renderEngineError(translator.family, status, Buffer.concat(errorText).toString()));
        settle("done");
      },
      fail: (error) => {
        // The headers alone are no answer: they come before the engine computes.
        if (!isAnswering && isRefusal(error)) return settle("refused");
        if (error.code !== "cancelled") fail(raw, translator, withCause(error, lease));
        settle("done");
      },
    });
    raw.onDrain(() => current.resume());
    const check = setInterval(
      () => {
        if (raw.unreadMs() < unreadMs || !scheduler.keepsWaiting(lease.instance)) return;
        const message = `the answer was cut: its client read nothing for ${unreadMs / 1000} s while others waited`;
        onFailure(new GatewayError("cancelled", message), lease.instance.id);
        raw.drop();
      },
      Math.min(checkReadersMs, unreadMs),
    ).unref();
    over.signal.addEventListener("abort", () => clearInterval(check), { once: true });
    const onCutOff = (): void => {
      fail(raw, translator, new GatewayError("shutting_down", "the gateway is stopping"));
      current.abort();
    };
    if (cutOff.aborted) onCutOff();
    else cutOff.addEventListener("abort", onCutOff, { once: true, signal: over.signal });
    if (left.aborted) current.abort();
    else left.addEventListener("abort", () => current.abort(), { once: true });
  });
}

/** An answer that the gateway itself has cut, for somebody's change, is not the engine's failing. */
export function withCause(error: GatewayError, lease: Lease): GatewayError {
  return error.code === "upstream_failed" && !isRefusal(error) ? (lease.overdue() ?? error) : error;
}

function finish(
  raw: RawReply,
  translator: Translator,
  headers: Readonly<Record<string, string>>,
  explain: (error: GatewayError) => GatewayError,
): void {
  const last = translator.end();
  if (last instanceof GatewayError) return fail(raw, translator, explain(last));
  if (!raw.headersSent()) return answer(raw, { status: 200, body: last ?? "" }, headers);
  if (last !== null) raw.write(last);
  raw.end();
}

function fail(raw: RawReply, translator: Translator, error: GatewayError): void {
  refuse(raw, translator, renderError(translator.family, error), errorHeaders(error));
}

function refuse(
  raw: RawReply,
  { family, nextSequence }: Translator,
  rendered: RenderedError,
  headers: Readonly<Record<string, string>> = {},
): void {
  if (!raw.headersSent()) return answer(raw, rendered, headers);
  raw.write(frameOf(family, rendered, nextSequence?.()));
  raw.end();
}

function answer(
  raw: RawReply,
  { status, body }: { readonly status: number; readonly body: object | string },
  headers: Readonly<Record<string, string>> = {},
): void {
  const bytes = body instanceof Uint8Array ? body : Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
  raw.head(status, {
    "content-type": "application/json; charset=utf-8",
    "content-length": String(bytes.length),
    ...headers,
  });
  raw.write(bytes);
  raw.end();
}
