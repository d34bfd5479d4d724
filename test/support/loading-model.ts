// A model that loads for as long as a test wants it to, for the routes of a family; its engine then answers at once.

import { clientLeftError, type GatewayError } from "../../src/core/errors.ts";
import type { AnswerSink } from "../../src/engines/llama/upstream.ts";
import type { NativeRoutesDeps } from "../../src/http/ollama/routes.ts";
import type { CompatRoutesDeps } from "../../src/http/openai/routes.ts";
import { createInFlight } from "../../src/http/proxy/in-flight.ts";
import { createRequestMeters } from "../../src/metrics/requests.ts";
import type { Lease } from "../../src/scheduler/requests.ts";

type Outcome = "loaded" | GatewayError;

export interface LoadingModel {
  readonly deps: CompatRoutesDeps & NativeRoutesDeps;
  /** A request waits for the model. */
  readonly waiting: Promise<void>;
  /** The model is loaded, or will never be. */
  loaded(outcome: Outcome): void;
}

/** `tickMs`: null leaves it as it is by itself. */
export function loadingModel(answer: (stream: boolean) => string, tickMs: number | null = 5): LoadingModel {
  let loaded: LoadingModel["loaded"] = () => undefined;
  let waits: () => void = () => undefined;
  const loading = new Promise<Outcome>((resolve) => {
    loaded = resolve;
  });
  const waiting = new Promise<void>((resolve) => {
    waits = resolve;
  });
  const instance = {
    id: "a",
    origin: "",
    key: "",
    ctxSize: null,
    nCtx: null,
    pid: null,
    workers: [],
    slots: 4,
    task: "completion" as const,
    retain: () => () => undefined,
  };
  const deps = {
    catalog: { named: () => ({ model: { id: "acme/a:Q8_0", upstreamId: "acme/a:Q8_0" }, variant: null }) },
    scheduler: { keep: () => undefined },
    prompts: { enter: () => Promise.resolve(null) },
    inFlight: createInFlight(),
    chatContext: {
      tryAcquire: () => null,
      acquire: async (_model: unknown, _size: unknown, left: AbortSignal): Promise<Lease> => {
        waits();
        const gone = new Promise<Outcome>((resolve) =>
          left.addEventListener("abort", () => resolve(clientLeftError())),
        );
        const outcome = await Promise.race([loading, gone]);
        if (outcome !== "loaded") throw outcome;
        return { instance, overdue: () => null, release: () => undefined };
      },
    },
    upstream: {
      send: (_instance: unknown, { stream }: { stream: boolean }, sink: AnswerSink) => {
        queueMicrotask(() => {
          sink.start(200, stream ? "text/event-stream" : "application/json");
          sink.data(Buffer.from(answer(stream)));
          sink.end();
        });
        return { resume: () => undefined, abort: () => undefined };
      },
    },
    cutOff: new AbortController().signal,
    onFailure: () => undefined,
    meters: createRequestMeters().family("openai"),
    ...(tickMs === null ? {} : { tickMs }),
  } as unknown as LoadingModel["deps"];
  return { deps, waiting, loaded };
}
