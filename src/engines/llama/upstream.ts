// Sends a request to a loaded model and hands back what comes, with backpressure and cancellation both ways.
// Knows HTTP, but no family's wire format.
import type { Dispatcher } from "undici";
import { clientLeftError, GatewayError, stoppingError, systemCode } from "../../core/errors.ts";
import { createStallWatch, type StallWatch } from "../process/stall-watch.ts";
import { readProgress } from "./computing.ts";
import { connect, createPools, type OwnConnection, openOwn, type Pools, sharedHealth } from "./connections.ts";
import type { Instance } from "./instances.ts";
import { createRounds, type Rounds } from "./rounds.ts";

/** Receives an answer. Exactly one of `end` and `fail` comes last. */
export interface AnswerSink {
  /** Status and headers; before any byte. */
  start(status: number, headers: Readonly<Record<string, string | string[] | undefined>>): void;
  /** False asks for no more until `resume` is called. */
  data(chunk: Buffer): boolean;
  end(): void;
  fail(error: GatewayError): void;
  /** Called twice a second at most, until the answer is over. */
  look?(): void;
}

export interface Exchange {
  /** The sink can take more. */
  resume(): void;
  /** The engine stops generating. Absent: the client left. */
  abort(error?: GatewayError): void;
}

export interface UpstreamRequest {
  readonly path: string;
  /** JSON, in pieces; null asks with GET. Of the client's own headers none goes along: its key is not for the engine. */
  readonly body: readonly Uint8Array[] | null;
  readonly stream: boolean;
  /** Called when the engine begins to answer, or has closed the connection: it reads a prompt to its end after its client left. */
  readonly onRead?: () => void;
}

export interface Upstream {
  send(instance: Instance, request: UpstreamRequest, sink: AnswerSink): Exchange;
  /** Ends what is under way at these models: nothing more will come. Where nothing came yet, it counts as a refusal. */
  cut(ids: readonly string[], message: string): void;
  close(): Promise<void>;
}

export interface UpstreamOptions {
  readonly probeAfterMs: number;
  /** ms without a sign of life after which a model on RPC workers hangs on one of them: its process still answers for its health. */
  readonly stallMs: number;
  readonly onStall: (instance: Instance) => void;
  /** The gateway stops: what is under way ends in `shutting_down`. */
  readonly cutOff: AbortSignal;
}

/** ms between two looks at what is under way, by one timer for all requests. */
const mostLookMs = 500;

/**
 * `probeAfterMs`: a process that is silent for so long is asked for its health, which a living one answers while it
 * computes. Seen: an instance that is ending accepts connections for a moment and never responds.
 */
export function createUpstream({ probeAfterMs, stallMs, onStall, cutOff }: UpstreamOptions): Upstream {
  // No time limits of its own: a long prompt is silent for minutes. One request at a time on a connection.
  const connections = createPools({ pipelining: 1, headersTimeout: 0, bodyTimeout: 0, connect });
  const isHealthy = sharedHealth(connections, probeAfterMs);
  const lookMs = Math.min(mostLookMs, probeAfterMs / 2);
  const open = createRounds<Sending>(lookMs, (sending) => sending.look());
  const stalls = createStallWatch<Instance>({
    stallMs,
    isWatched: ({ workers }) => workers.length > 0,
    look: (instance) => readProgress(connections.of(instance), instance),
    onStall: (instance) => {
      // First: a request that is repeated at once must not get the same process.
      onStall(instance);
      const message = "the model hangs on one of its RPC workers";
      cutWhere(({ origin }) => origin === instance.origin, lostError(message));
    },
  });
  const shared = { connections, open, stalls, isHealthy, mostQuiet: probeAfterMs / lookMs, cutOff };

  function cutWhere(isMeant: (instance: Instance) => boolean, error: GatewayError): void {
    for (const sending of open.members()) if (isMeant(sending.instance)) sending.abort(error);
  }

  cutOff.addEventListener("abort", () => cutWhere(() => true, stoppingError()), { once: true });
  return {
    send: (instance, request, sink) => new Sending(shared, instance, request, sink),
    cut: (ids, message) => cutWhere(({ id }) => ids.includes(id), lostError(message)),
    close: connections.destroy,
  };
}

interface Shared {
  readonly connections: Pools;
  readonly open: Rounds<Sending>;
  readonly stalls: StallWatch<Instance>;
  readonly isHealthy: (instance: Instance) => Promise<boolean>;
  /** Looks without a byte after which the process is asked for its health. */
  readonly mostQuiet: number;
  readonly cutOff: AbortSignal;
}

/** One request and its answer: the handler that undici calls back, and nothing allocated per chunk. */
class Sending implements Exchange, Dispatcher.DispatchHandler {
  place = -1;
  readonly instance: Instance;
  readonly #shared: Shared;
  readonly #request: UpstreamRequest;
  readonly #sink: AnswerSink;
  readonly #own: OwnConnection | undefined;
  readonly #noLongerAwaited: () => void;
  #controller: Dispatcher.DispatchController | null = null;
  #attempt = 0;
  #abortedBy: GatewayError | null = null;
  #isStarted = false;
  #isOver = false;
  /** Looks since the last byte. */
  #quiet = 0;

  constructor(shared: Shared, instance: Instance, request: UpstreamRequest, sink: AnswerSink) {
    this.instance = instance;
    this.#shared = shared;
    this.#request = request;
    this.#sink = sink;
    this.#own = request.onRead && openOwn(instance.origin);
    this.#noLongerAwaited = shared.stalls.begin(instance);
    shared.open.add(this);
    if (shared.cutOff.aborted) this.abort(stoppingError());
    this.#dispatch();
  }

  resume(): void {
    this.#controller?.resume();
  }

  abort(error = clientLeftError()): void {
    if (this.#isOver || this.#abortedBy) return;
    this.#abortedBy = error;
    if (!this.#own || this.#isStarted) return this.#controller?.abort(error);
    this.#fail(error);
    this.#own.leave();
  }

  look(): void {
    this.#sink.look?.();
    const { mostQuiet, isHealthy } = this.#shared;
    if (++this.#quiet <= mostQuiet) return;
    void isHealthy(this.instance).then((isWell) => {
      if (isWell) this.#quiet = 0;
      else if (this.#quiet > mostQuiet) this.abort(new GatewayError("upstream_failed", silentMessage));
    });
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#abortedBy) controller.abort(this.#abortedBy);
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Readonly<Record<string, string | string[] | undefined>>,
  ): void {
    this.#read();
    if (this.#isOver) return;
    this.#isStarted = true;
    this.#quiet = 0;
    this.#sink.start(status, headers);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#quiet = 0;
    this.#shared.stalls.sign(this.instance);
    if (!this.#sink.data(chunk)) controller.pause();
  }

  onResponseEnd(): void {
    if (!this.#isOver) {
      this.#finish();
      this.#sink.end();
    }
    void this.#own?.client.destroy();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#read();
    if (this.#isOver) return;
    // A kept connection that the engine had closed meanwhile: nothing was answered, so once more.
    if (!this.#isStarted && !this.#abortedBy && this.#attempt++ === 0 && isStaleConnection(error))
      return this.#dispatch();
    this.#fail(this.#abortedBy ?? brokenOff(error, this.#isStarted));
  }

  #dispatch(): void {
    const { path, body, stream } = this.#request;
    const headers = ["authorization", `Bearer ${this.instance.key}`];
    if (body !== null) headers.push("content-type", "application/json");
    // undici counts what is in one piece.
    if (body !== null && body.length > 1) headers.push("content-length", String(lengthOf(body)));
    (this.#own?.client ?? this.#shared.connections.of(this.instance)).dispatch(
      {
        origin: this.instance.origin,
        path,
        method: body === null ? "GET" : "POST",
        headers,
        body: body && inOne(body),
        // llama-server closes the connection after each stream, whatever its headers say: reusing it fails.
        reset: stream,
      },
      this,
    );
  }

  /** The engine has read the prompt, or is gone. */
  #read(): void {
    this.#request.onRead?.();
    // The client left before.
    if (this.#isOver) void this.#own?.client.destroy();
  }

  #finish(): void {
    this.#isOver = true;
    this.#noLongerAwaited();
    this.#shared.open.delete(this);
  }

  #fail(error: GatewayError): void {
    this.#finish();
    this.#sink.fail(error);
  }
}

/** Bytes up to which pieces are joined: undici writes an iterable piece by piece, which costs more than the copy. */
const smallBody = 1 << 18;

/** Any iterable is taken, whatever its types say. */
function inOne(body: readonly Uint8Array[]): Uint8Array {
  const [first] = body;
  if (body.length === 1 && first) return first;
  return lengthOf(body) <= smallBody ? Buffer.concat(body) : (body as unknown as Uint8Array);
}

export function lengthOf(body: readonly Uint8Array[]): number {
  return body.reduce((sum, { length }) => sum + length, 0);
}

function isStaleConnection(error: Error): boolean {
  return ["ECONNRESET", "EPIPE", "UND_ERR_SOCKET"].includes(systemCode(error) ?? "");
}

/** Marks what ended for a lost worker. */
const lostCause = "worker lost";

function lostError(message: string): GatewayError {
  return new GatewayError("upstream_failed", message, { cause: lostCause });
}

const silentMessage = "the engine does not answer any more";

/** Nothing was answered, and the process takes no requests: another instance may. */
export function isRefusal(error: GatewayError): boolean {
  return (
    error.code === "upstream_failed" &&
    (systemCode(error.cause) === "ECONNREFUSED" || error.cause === lostCause || error.message === silentMessage)
  );
}

/** `started`: a part of the answer has come. */
function brokenOff(error: Error, started: boolean): GatewayError {
  // The connection ended before the response did: the texts of parser, socket and system add nothing to that.
  const ended = isStaleConnection(error) || error.message.includes("Invalid EOF");
  const how = ended ? (started ? "in the middle of the answer" : "before it answered") : null;
  const message = `the engine broke off ${how ?? `(${systemCode(error) ?? error.message})`}`;
  return new GatewayError("upstream_failed", message, { cause: error });
}
