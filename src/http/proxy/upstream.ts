// Sends a request to a loaded model and hands back what comes, with backpressure and cancellation both ways.
// Knows HTTP, but no family's wire format.
import type { Socket } from "node:net";
import { Agent, buildConnector, Client, type Dispatcher } from "undici";
import { GatewayError, systemCode } from "../../core/errors.ts";
import { steadyNow } from "../../core/steady.ts";
import { readProgress } from "../../engines/llama/computing.ts";
import type { Instance } from "../../engines/llama/instances.ts";
import { createStallWatch } from "../../engines/process/stall-watch.ts";

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

/**
 * `probeAfterMs`: a process that is silent for so long is asked for its health, which a living one answers while it
 * computes. Seen: one that was told to end takes connections for a moment, and then never answers them.
 */
export function createUpstream(options: UpstreamOptions): Upstream {
  const { probeAfterMs, stallMs } = options;
  /** Ends one request, where it is one of those that the test means. */
  const cuts = new Set<(isMeant: (instance: Instance) => boolean, message: string) => void>();
  // No time limits of its own: a long prompt is silent for minutes. One request at a time on a connection.
  const agent = new Agent({ pipelining: 1, headersTimeout: 0, bodyTimeout: 0, connect: { timeout: 5_000 } });
  const isHealthy = sharedHealth((instance) => isHealthyNow(agent, instance, probeAfterMs), probeAfterMs / 2);
  const stalls = createStallWatch<Instance>({
    stallMs,
    isWatched: ({ workers }) => workers.length > 0,
    look: (instance) => readProgress(agent, instance),
    onStall: (instance) => {
      // First: whoever asks again at once must not get the same process.
      options.onStall(instance);
      cutWhere((other) => other.origin === instance.origin, "the model hangs on one of its RPC workers");
    },
  });

  function cutWhere(isMeant: (instance: Instance) => boolean, message: string): void {
    for (const cut of cuts) cut(isMeant, message);
  }

  return {
    send: (instance, { path, body, stream, onRead }, sink) => {
      const own = onRead && openOwn(instance.origin);
      let controller: Dispatcher.DispatchController | null = null;
      let aborted = false;
      let started = false;
      let over = false;
      let lastByte = steadyNow();
      const watchdog = setInterval(() => void probe(), probeAfterMs);
      watchdog.unref();
      const noLongerAwaited = stalls.begin(instance);
      const cutThis = (isMeant: (instance: Instance) => boolean, message: string): void => {
        if (isMeant(instance)) controller?.abort(new GatewayError("upstream_failed", message, { cause: lostCause }));
      };
      cuts.add(cutThis);

      async function probe(): Promise<void> {
        if (over || steadyNow() - lastByte < probeAfterMs || (await isHealthy(instance))) return;
        if (!over && steadyNow() - lastByte >= probeAfterMs)
          controller?.abort(new GatewayError("upstream_failed", silentMessage));
      }

      function finish(tell: () => void): void {
        over = true;
        clearInterval(watchdog);
        noLongerAwaited();
        cuts.delete(cutThis);
        tell();
      }

      function read(): void {
        onRead?.();
        // The client left before.
        if (over) void own?.client.destroy();
      }

      function dispatch(attempt: number): void {
        (own?.client ?? agent).dispatch(
          {
            origin: instance.origin,
            path,
            method: body === null ? "GET" : "POST",
            headers: {
              authorization: `Bearer ${instance.key}`,
              ...(body === null
                ? {}
                : { "content-type": "application/json", "content-length": String(lengthOf(body)) }),
            },
            // Any iterable is taken, whatever its types say.
            body: (body?.length === 1 ? body[0] : body) as Uint8Array | null,
            // llama-server closes the connection after each stream, whatever its headers say: reusing it fails.
            reset: stream,
          },
          {
            onRequestStart: (current) => {
              controller = current;
              if (aborted) current.abort(new GatewayError("cancelled", "the client left"));
            },
            onResponseStart: (_controller, status, headers) => {
              read();
              if (over) return;
              started = true;
              lastByte = steadyNow();
              sink.start(status, headers);
            },
            onResponseData: (current, chunk) => {
              lastByte = steadyNow();
              stalls.sign(instance);
              if (!sink.data(chunk)) current.pause();
            },
            onResponseEnd: () => {
              if (!over) finish(sink.end);
              void own?.client.destroy();
            },
            onResponseError: (_controller, error) => {
              read();
              if (over) return;
              // A kept connection that the engine had closed meanwhile: nothing was answered, so once more.
              if (!started && !aborted && attempt === 0 && isStaleConnection(error)) return dispatch(1);
              finish(() =>
                sink.fail(aborted ? new GatewayError("cancelled", "the client left") : brokenOff(error, started)),
              );
            },
          },
        );
      }

      dispatch(0);
      return {
        resume: () => controller?.resume(),
        abort: () => {
          if (over || aborted) return;
          aborted = true;
          const left = new GatewayError("cancelled", "the client left");
          if (!own || started) return controller?.abort(left);
          finish(() => sink.fail(left));
          own.leave();
        },
      };
    },
    cut: (ids, message) => cutWhere((instance) => ids.includes(instance.id), message),
    close: () => agent.destroy(),
  };
}

export function lengthOf(body: readonly Uint8Array[]): number {
  return body.reduce((sum, { length }) => sum + length, 0);
}

/** A connection of which we can close our half: the engine takes that for a client that left, and closes its own when it has finished. */
function openOwn(origin: string): { readonly client: Client; leave(): void } {
  let socket: Socket | null = null;
  const connect = buildConnector({ timeout: 5_000 });
  const client = new Client(origin, {
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: (options, done) =>
      connect(options, (...made) => {
        [, socket] = made;
        done(...made);
      }),
  });
  return { client, leave: () => void (socket ? socket.end() : client.destroy()) };
}

function isStaleConnection(error: Error): boolean {
  return ["ECONNRESET", "EPIPE", "UND_ERR_SOCKET"].includes(systemCode(error) ?? "");
}

/** Marks what ended for a lost worker. */
const lostCause = "worker lost";
const silentMessage = "the engine does not answer any more";

/**
 * Asks a process once for all who want to know, and again only when its good answer is `freshMs` old: a thousand requests that
 * wait for one process would else be a thousand questions every few seconds, each with a connection of its own.
 */
function sharedHealth(ask: (instance: Instance) => Promise<boolean>, freshMs: number): typeof ask {
  const known = new Map<string, { readonly answer: Promise<boolean>; until: number }>();
  return (instance) => {
    const now = steadyNow();
    for (const [origin, { until }] of known) if (until < now) known.delete(origin);
    const shared = known.get(instance.origin);
    if (shared) return shared.answer;
    const entry = { answer: ask(instance), until: Number.POSITIVE_INFINITY };
    known.set(instance.origin, entry);
    void entry.answer.then((isWell) => {
      if (isWell) entry.until = steadyNow() + freshMs;
      else known.delete(instance.origin);
    });
    return entry.answer;
  };
}

async function isHealthyNow(agent: Agent, instance: Instance, withinMs: number): Promise<boolean> {
  try {
    const answer = await agent.request({
      origin: instance.origin,
      path: "/health",
      method: "GET",
      headers: { authorization: `Bearer ${instance.key}` },
      reset: true,
      signal: AbortSignal.timeout(withinMs),
    });
    await answer.body.dump();
    return answer.statusCode === 200;
  } catch {
    return false;
  }
}

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
  // The connection ended before the answer did: what the parser, the socket or the system calls it tells nobody more.
  const ended = isStaleConnection(error) || error.message.includes("Invalid EOF");
  const how = ended ? (started ? "in the middle of the answer" : "before it answered") : null;
  const message = `the engine broke off ${how ?? `(${systemCode(error) ?? error.message})`}`;
  return new GatewayError("upstream_failed", message, { cause: error });
}
