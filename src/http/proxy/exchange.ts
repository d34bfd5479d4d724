// One generation from lease to last byte: waits for the model, sends the request, passes the answer on through a family's
// translator, and ends in the family's error frame where the engine breaks off.
import type { ServerResponse } from "node:http";
import { contextOf } from "../../commands/chat-context.ts";
import { GatewayError, toGatewayError } from "../../core/errors.ts";
import { LineBlocks } from "../../core/event-stream.ts";
import { lengthOf } from "../../engines/llama/connections.ts";
import { type AnswerSink, type Exchange, isRefusal } from "../../engines/llama/upstream.ts";
import type { RequestMeter } from "../../metrics/requests.ts";
import { needsPermit, type PromptPermit } from "../../scheduler/prompt-queue.ts";
import type { Lease } from "../../scheduler/requests.ts";
import { errorHeaders, frameOf, type RenderedError, renderEngineError, renderError } from "../server/errors.ts";
import { RawReply, type ReplyListener } from "../server/raw-reply.ts";
import type { ExchangeDeps, Generation } from "./generation.ts";
import type { RequestState, Underway } from "./in-flight.ts";

const attempts = 3;
/**
 * A model may take longer to load than a client waits: editors give up on a silent answer after 30 s, proxies and people
 * sooner. Headers that are sent tie the answer to its status, so a wait that ends within seconds ends without them.
 */
const firstTickMs = 5_000;
const defaultTickMs = 12_000;

/** Short: it begins when the kernel's buffers are full, which takes a client that has not read for long. */
const defaultUnreadMs = 3_000;

/** Writes the whole answer, whichever way it ends. */
export function runGeneration(deps: ExchangeDeps, response: ServerResponse, generation: Generation): void {
  new Answering(deps, response, generation).begin();
}

/**
 * One generation under way. A chat to a loaded model takes no promise, timer or signal: it is admitted, sent and answered by
 * callbacks. Only a wait has them.
 */
class Answering implements AnswerSink, ReplyListener, Underway {
  place = -1;
  readonly number: number;
  readonly beganAt = performance.now();
  readonly #deps: ExchangeDeps;
  readonly #generation: Generation;
  readonly #raw: RawReply;
  readonly #meter: RequestMeter;
  #lease: Lease | null = null;
  #permit: PromptPermit | null = null;
  #exchange: Exchange | null = null;
  #left: AbortController | null = null;
  #tick: NodeJS.Timeout | undefined;
  #attempt = 1;
  #isCancelled = false;
  /** Of the engine's answer. */
  #status = 0;
  #isAnswering = false;
  readonly #blocks = new LineBlocks();
  #headers: Readonly<Record<string, string>> = {};
  /** Of the answer, or of the error in which it ended; 0: none was sent. */
  #outcome = 0;

  constructor(deps: ExchangeDeps, response: ServerResponse, generation: Generation) {
    this.#deps = deps;
    this.#generation = generation;
    this.#raw = new RawReply(response, this);
    this.#meter = deps.meters.of(generation.route, generation.model.id);
    this.number = deps.inFlight.nextNumber();
    deps.inFlight.add(this);
  }

  get model(): string {
    return this.#generation.model.id;
  }

  get route(): string {
    return this.#generation.route;
  }

  state(): RequestState {
    if (!this.#exchange) return "waiting";
    return this.#isAnswering ? "answering" : "prompt";
  }

  cancel(): void {
    this.#isCancelled = true;
    this.left();
  }

  begin(): void {
    const { model, contextSize, body, stream, translator } = this.#generation;
    if (stream && translator.waiting) this.#tickAfter(Math.min(firstTickMs, this.#tickMs()));
    try {
      const lease = needsPermit(lengthOf(body)) ? null : this.#deps.chatContext.tryAcquire(model, contextSize);
      if (lease) {
        this.#meter.model.queueWait.observe(0);
        this.#send(lease);
      } else void this.#wait();
    } catch (error) {
      this.#giveUp(error);
    }
  }

  left(): void {
    this.#left?.abort();
    this.#exchange?.abort();
  }

  drained(): void {
    this.#exchange?.resume();
  }

  async #wait(): Promise<void> {
    const { model, contextSize, body } = this.#generation;
    const { prompts, chatContext } = this.#deps;
    try {
      const left = this.#leftSignal();
      this.#permit ??= await prompts.enter(model.upstreamId, lengthOf(body), left);
      const lease = chatContext.tryAcquire(model, contextSize) ?? (await chatContext.acquire(model, contextSize, left));
      if (this.#attempt === 1) this.#meter.model.queueWait.observe(this.#sinceBegin() / 1000);
      this.#send(lease);
    } catch (error) {
      this.#giveUp(error);
    }
  }

  #leftSignal(): AbortSignal {
    this.#left ??= new AbortController();
    if (this.#isGone()) this.#left.abort();
    return this.#left.signal;
  }

  #send(lease: Lease): void {
    const { scheduler, upstream } = this.#deps;
    const { model, keepAlive } = this.#generation;
    this.#lease = lease;
    if (keepAlive) scheduler.keep(model.upstreamId, keepAlive);
    const contextSize = contextOf(model, lease.instance);
    if (contextSize !== null) this.#headers = { "x-context-size": String(contextSize) };
    const onRead = this.#permit?.send(this.#leftSignal());
    this.#exchange = upstream.send(lease.instance, onRead ? { ...this.#generation, onRead } : this.#generation, this);
    if (this.#isGone()) this.#exchange.abort();
  }

  /** No one awaits its response any more. */
  #isGone(): boolean {
    return this.#isCancelled || this.#raw.hasLeft();
  }

  start(status: number, contentType: string): void {
    this.#status = status;
    clearTimeout(this.#tick);
    if (status !== 200) return;
    const headers = this.#generation.translator.begin(contentType);
    if (headers && !this.#raw.headersSent()) this.#raw.head(200, { ...headers, ...this.#headers });
  }

  data(chunk: Buffer): boolean {
    if (!this.#isAnswering && this.#status === 200) this.#beginAnswer();
    if (this.#isAnswering && this.#generation.stream) {
      const block = this.#blocks.lines(chunk, this.#raw.isFlushed());
      const text = block && this.#generation.translator.lines(block);
      if (text !== null) this.#raw.write(text);
    } else this.#blocks.keep(chunk);
    return !this.#raw.isBlocked();
  }

  #beginAnswer(): void {
    this.#isAnswering = true;
    if (this.#generation.stream) this.#meter.firstTokenCame(this.#sinceBegin());
  }

  end(): void {
    const { translator } = this.#generation;
    try {
      const rest = this.#blocks.rest();
      if (this.#status === 200) this.#finish(translator.end(rest));
      else this.#refuse(renderEngineError(translator.family, this.#status, rest.toString()));
    } catch (error) {
      // Called by the socket, which has no one to hand it to.
      return this.#giveUp(error);
    }
    this.#over();
  }

  fail(error: GatewayError): void {
    // The headers alone are no answer: they come before the engine computes.
    if (!this.#isAnswering && isRefusal(error)) return this.#askNext();
    if (error.code !== "cancelled" || this.#isCancelled) this.#failWith(this.#isCancelled ? cancelledError() : error);
    this.#over();
  }

  look(): void {
    const { unreadMs = defaultUnreadMs, scheduler, onFailure } = this.#deps;
    const instance = this.#lease?.instance;
    if (!instance || this.#raw.unreadMs() < unreadMs || !scheduler.keepsWaiting(instance)) return;
    const message = `the response was cut: its client read nothing for ${unreadMs / 1000} s while other requests waited`;
    onFailure(new GatewayError("cancelled", message), instance.id);
    this.#raw.drop();
  }

  /** Its process ended between our looking and our asking: nothing was answered, so the next instance is asked. */
  #askNext(): void {
    const lease = this.#lease;
    this.#release();
    if (!lease || this.#attempt++ === attempts)
      return this.#giveUp(new GatewayError("upstream_failed", `${this.#generation.model.id} does not accept requests`));
    this.#deps.scheduler.replace(lease.instance).then(
      () => this.#wait(),
      (error: unknown) => this.#giveUp(error),
    );
  }

  #giveUp(error: unknown): void {
    const failure = this.#isCancelled ? cancelledError() : toGatewayError(error);
    if (!this.#raw.hasLeft()) {
      if (failure.status >= 500) this.#deps.onFailure(failure, this.#generation.model.id);
      this.#failWith(failure);
    }
    this.#over();
  }

  #sinceBegin(): number {
    return performance.now() - this.beganAt;
  }

  #over(): void {
    this.#deps.inFlight.delete(this);
    this.#meter.ended(this.#outcome);
    if (this.#outcome === 200) this.#meter.wasAnswered(this.#sinceBegin());
    clearTimeout(this.#tick);
    this.#release();
    this.#permit?.end();
  }

  #release(): void {
    this.#lease?.release();
    this.#lease = null;
    this.#exchange = null;
  }

  #tickMs(): number {
    return this.#deps.tickMs ?? defaultTickMs;
  }

  #tickAfter(ms: number): void {
    this.#tick = setTimeout(() => {
      const { waiting } = this.#generation.translator;
      if (!this.#raw.headersSent()) this.#raw.head(200, waiting?.headers ?? {});
      this.#raw.write(waiting?.tick ?? "");
      this.#tickAfter(this.#tickMs());
    }, ms);
  }

  #finish(last: Uint8Array | string | GatewayError | null): void {
    if (last instanceof GatewayError) return this.#failWith(last);
    this.#outcome = 200;
    this.#generation.translator.count?.(this.#meter.model);
    if (!this.#raw.headersSent()) return this.#raw.answer(200, last ?? "", this.#headers);
    if (last !== null) this.#raw.write(last);
    this.#raw.end();
  }

  #failWith(failure: GatewayError): void {
    const error = this.#lease ? withCause(failure, this.#lease) : failure;
    this.#refuse(renderError(this.#generation.translator.family, error), errorHeaders(error));
  }

  #refuse(rendered: RenderedError, headers: Readonly<Record<string, string>> = {}): void {
    const { family, nextSequence } = this.#generation.translator;
    this.#outcome = rendered.status;
    if (!this.#raw.headersSent()) return this.#raw.answer(rendered.status, JSON.stringify(rendered.body), headers);
    this.#raw.write(frameOf(family, rendered, nextSequence?.()));
    this.#raw.end();
  }
}

function cancelledError(): GatewayError {
  return new GatewayError("cancelled", "the request was cancelled by POST /api/requests/cancel");
}

/** A response that the gateway itself has cut, for a change, is no failure of the engine. */
export function withCause(error: GatewayError, lease: Lease): GatewayError {
  return error.code === "upstream_failed" && !isRefusal(error) ? (lease.overdue() ?? error) : error;
}
