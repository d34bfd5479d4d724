// Sends a request to a loaded model and hands back what comes, with backpressure and cancellation both ways.
// Knows HTTP, but no family's wire format.
import type { Dispatcher } from "undici";
import { clientLeftError, GatewayError, systemCode } from "../../core/errors.ts";
import { readProgress } from "../../engines/llama/computing.ts";
import type { Instance } from "../../engines/llama/instances.ts";
import { createStallWatch, type StallWatch } from "../../engines/process/stall-watch.ts";
import { createPools, type OwnConnection, openOwn, type Pools } from "./connections.ts";
import { sharedHealth } from "./health.ts";
import { createRounds, type Rounds } from "./rounds.ts";

/** Receives an answer. Exactly one of `end` and `fail` comes last. */
export interface AnswerSink {
  /** Status and headers; before any byte. */
  start(status: number, headers: Readonly<Record<string, string | string[] | undefined>>): void;
  /** False asks for no more until `resume` is called. */
  data(chunk: Buffer): boolean;
  end(): void;
  fail(error: GatewayError): void;
}

export interface Exchange {
  /** The sink can take more. */
  resume(): void;
  /** The client left: the engine stops generating. */
  abort(): void;
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
}

/** In so many parts a silent process's time is counted, by one timer for all requests. */
const quietParts = 2;

/**
 * `probeAfterMs`: a process that is silent for so long is asked for its health, which a living one answers while it
 * computes. Seen: an instance that is ending accepts connections for a moment and never responds.
 */
export function createUpstream({ probeAfterMs, stallMs, onStall }: UpstreamOptions): Upstream {
  // No time limits of its own: a long prompt is silent for minutes. One request at a time on a connection.
  const connections = createPools({ pipelining: 1, headersTimeout: 0, bodyTimeout: 0, connect: { timeout: 5_000 } });
  const isHealthy = sharedHealth(connections.of, probeAfterMs);
  const open = createRounds<Sending>(probeAfterMs / quietParts, (sending) => sending.look(isHealthy));
  const stalls = createStallWatch<Instance>({
    stallMs,
    isWatched: ({ workers }) => workers.length > 0,
    look: (instance) => readProgress(connections.of(instance), instance),
    onStall: (instance) => {
      // First: a request that is repeated at once must not get the same process.
      onStall(instance);
      cutWhere((other) => other.origin === instance.origin, "the model hangs on one of its RPC workers");
    },
  });

  function cutWhere(isMeant: (instance: Instance) => boolean, message: string): void {
    for (const sending of open.members()) if (isMeant(sending.instance)) sending.cut(message);
  }

  return {
    send: (instance, request, sink) => new Sending({ connections, open, stalls }, instance, request, sink),
    cut: (ids, message) => cutWhere((instance) => ids.includes(instance.id), message),
    close: connections.destroy,
  };
}

interface Shared {
  readonly connections: Pools;
  readonly open: Rounds<Sending>;
  readonly stalls: StallWatch<Instance>;
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
  #isAborted = false;
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
    this.#dispatch();
  }

  resume(): void {
    this.#controller?.resume();
  }

  abort(): void {
    if (this.#isOver || this.#isAborted) return;
    this.#isAborted = true;
    if (!this.#own || this.#isStarted) return this.#controller?.abort(clientLeftError());
    this.#fail(clientLeftError());
    this.#own.leave();
  }

  cut(message: string): void {
    this.#controller?.abort(new GatewayError("upstream_failed", message, { cause: lostCause }));
  }

  look(isHealthy: (instance: Instance) => Promise<boolean>): void {
    if (++this.#quiet <= quietParts) return;
    void isHealthy(this.instance).then((isWell) => {
      if (isWell) this.#quiet = 0;
      else if (!this.#isOver && this.#quiet > quietParts)
        this.#controller?.abort(new GatewayError("upstream_failed", silentMessage));
    });
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#isAborted) controller.abort(clientLeftError());
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
    if (!this.#isStarted && !this.#isAborted && this.#attempt++ === 0 && isStaleConnection(error))
      return this.#dispatch();
    this.#fail(this.#isAborted ? clientLeftError() : brokenOff(error, this.#isStarted));
  }

  #dispatch(): void {
    const { path, body, stream } = this.#request;
    const headers = ["authorization", `Bearer ${this.instance.key}`];
    if (body !== null) headers.push("content-type", "application/json", "content-length", String(lengthOf(body)));
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
  if (error instanceof GatewayError) return error;
  // The connection ended before the response did: the texts of parser, socket and system add nothing to that.
  const ended = isStaleConnection(error) || error.message.includes("Invalid EOF");
  const how = ended ? (started ? "in the middle of the answer" : "before it answered") : null;
  const message = `the engine broke off ${how ?? `(${systemCode(error) ?? error.message})`}`;
  return new GatewayError("upstream_failed", message, { cause: error });
}
