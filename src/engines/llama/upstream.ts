// Sends a request to a loaded model and hands back what comes, with backpressure and cancellation both ways.
// Knows HTTP, but no family's wire format.
import { clientLeftError, GatewayError, stoppingError, systemCode } from "../../core/errors.ts";
import { createStallWatch, type StallWatch } from "../process/stall-watch.ts";
import { readProgress } from "./computing.ts";
import { type AnswerHandler, type Connection, type Connections, createConnections } from "./connections.ts";
import { sharedHealth } from "./health.ts";
import type { Instance } from "./instances.ts";
import { createRounds, type Rounds } from "./rounds.ts";

/** Receives an answer. Exactly one of `end` and `fail` comes last. */
export interface AnswerSink {
  /** Before any byte. */
  start(status: number, contentType: string): void;
  /** `chunk`: valid until it returns. False asks for no more until `resume` is called. */
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
  close(): void;
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
  const connections = createConnections();
  const isHealthy = sharedHealth(probeAfterMs);
  const lookMs = Math.min(mostLookMs, probeAfterMs / 2);
  const open = createRounds<Sending>(lookMs, (sending) => sending.look());
  const stalls = createStallWatch<Instance>({
    stallMs,
    isWatched: ({ workers }) => workers.length > 0,
    look: readProgress,
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
  readonly connections: Connections;
  readonly open: Rounds<Sending>;
  readonly stalls: StallWatch<Instance>;
  readonly isHealthy: (instance: Instance) => Promise<boolean>;
  /** Looks without a byte after which the process is asked for its health. */
  readonly mostQuiet: number;
  readonly cutOff: AbortSignal;
}

/** One request and its answer: nothing is allocated per chunk. */
class Sending implements Exchange, AnswerHandler {
  place = -1;
  readonly instance: Instance;
  readonly #shared: Shared;
  readonly #request: UpstreamRequest;
  readonly #sink: AnswerSink;
  readonly #noLongerAwaited: () => void;
  #connection: Connection;
  #isRepeated = false;
  #isStarted = false;
  #isOver = false;
  /** Looks since the last byte. */
  #quiet = 0;

  constructor(shared: Shared, instance: Instance, request: UpstreamRequest, sink: AnswerSink) {
    this.instance = instance;
    this.#shared = shared;
    this.#request = request;
    this.#sink = sink;
    this.#noLongerAwaited = shared.stalls.begin(instance);
    shared.open.add(this);
    this.#connection = this.#send();
    if (shared.cutOff.aborted) this.abort(stoppingError());
  }

  resume(): void {
    this.#connection.resume();
  }

  abort(error = clientLeftError()): void {
    if (this.#isOver) return;
    this.#fail(error);
    if (this.#request.onRead && !this.#isStarted) this.#connection.leave();
    else this.#connection.destroy();
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

  onHead(status: number, contentType: string): void {
    this.#request.onRead?.();
    // Its client left, and the process has read the prompt now.
    if (this.#isOver) return this.#connection.destroy();
    this.#isStarted = true;
    this.#quiet = 0;
    this.#sink.start(status, contentType);
  }

  onBody(bytes: Buffer): boolean {
    this.#quiet = 0;
    this.#shared.stalls.sign(this.instance);
    return this.#sink.data(bytes);
  }

  onEnd(): void {
    this.#finish();
    this.#sink.end();
  }

  onFailed(error: Error | null): void {
    this.#request.onRead?.();
    if (this.#isOver) return;
    // A kept connection that the engine had closed meanwhile: nothing was answered, so once more.
    if (!this.#isStarted && !this.#isRepeated && isStaleConnection(error)) {
      this.#isRepeated = true;
      this.#connection = this.#send();
    } else this.#fail(brokenOff(error, this.#isStarted));
  }

  #send(): Connection {
    const { path, body, stream } = this.#request;
    // llama-server closes the connection after each stream, whatever its headers say: reusing it fails.
    return this.#shared.connections.send(this.instance, { path, body, isLast: stream }, this, this.#isRepeated);
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

/** Null: it was closed in good order. */
function isStaleConnection(error: Error | null): boolean {
  return error === null || ["ECONNRESET", "EPIPE"].includes(systemCode(error) ?? "");
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
function brokenOff(error: Error | null, started: boolean): GatewayError {
  const cause = error === null || isStaleConnection(error) ? null : (systemCode(error) ?? error.message);
  const how = cause === null ? (started ? "in the middle of the answer" : "before it answered") : `(${cause})`;
  return new GatewayError("upstream_failed", `the engine broke off ${how}`, { cause: error });
}
