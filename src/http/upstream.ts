// Sends a request to a loaded model and hands back what comes, with backpressure and cancellation both ways.
// Knows HTTP, but no family's wire format.
import { Agent, type Dispatcher } from "undici";
import { GatewayError, systemCode } from "../core/errors.ts";
import type { Instance } from "../engines/instances.ts";

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

export interface Upstream {
  send(instance: Instance, request: { readonly path: string; readonly body: Uint8Array; readonly stream: boolean }, sink: AnswerSink): Exchange;
  close(): Promise<void>;
}

export function createUpstream(): Upstream {
  // No time limits of its own: a long prompt is silent for minutes. One request at a time on a connection.
  const agent = new Agent({ pipelining: 1, headersTimeout: 0, bodyTimeout: 0, connect: { timeout: 5_000 } });

  return {
    send: (instance, { path, body, stream }, sink) => {
      let controller: Dispatcher.DispatchController | null = null;
      let aborted = false;
      let started = false;
      let over = false;

      function dispatch(attempt: number): void {
        agent.dispatch(
          {
            origin: instance.origin,
            path,
            method: "POST",
            headers: { "content-type": "application/json", authorization: `Bearer ${instance.key}` },
            body,
            // llama-server closes the connection after each stream, whatever its headers say: reusing it fails.
            reset: stream,
          },
          {
            onRequestStart: (current) => {
              controller = current;
              if (aborted) current.abort(new GatewayError("cancelled", "the client left"));
            },
            onResponseStart: (_controller, status, headers) => {
              started = true;
              sink.start(status, headers);
            },
            onResponseData: (current, chunk) => {
              if (!sink.data(chunk)) current.pause();
            },
            onResponseEnd: () => {
              over = true;
              sink.end();
            },
            onResponseError: (_controller, error) => {
              if (over) return;
              // A kept connection that the engine had closed meanwhile: nothing was answered, so once more.
              if (!started && !aborted && attempt === 0 && isStaleConnection(error)) return dispatch(1);
              over = true;
              sink.fail(aborted ? new GatewayError("cancelled", "the client left") : brokenOff(error));
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
          controller?.abort(new GatewayError("cancelled", "the client left"));
        },
      };
    },
    close: () => agent.destroy(),
  };
}

function isStaleConnection(error: Error): boolean {
  return ["ECONNRESET", "EPIPE", "UND_ERR_SOCKET"].includes(systemCode(error) ?? "");
}

function brokenOff(error: Error): GatewayError {
  return new GatewayError("upstream_failed", `the engine broke off (${systemCode(error) ?? error.message})`, { cause: error });
}
