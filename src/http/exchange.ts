// One generation from lease to last byte: waits for the model, sends the request, passes the answer on through a family's
// translator, and ends in the family's error frame where the engine breaks off.
import type { FastifyReply } from "fastify";
import { GatewayError, toGatewayError } from "../core/errors.ts";
import type { KeepAlive } from "../core/keep-alive.ts";
import type { CachedModel } from "../plan/observed.ts";
import type { Admission, Lease } from "./admission.ts";
import type { ChatContext } from "./chat-context.ts";
import { errorFrame, renderEngineError, renderError } from "./errors.ts";
import type { IdleUnload } from "./idle.ts";
import { createRawReply, type RawReply } from "./raw-reply.ts";
import { isRefusal, type Upstream } from "./upstream.ts";

/** How a family turns the engine's answer into its own. */
export interface Translator {
  readonly family: "compat" | "native";
  /** Headers for a stream; null for an answer that is sent whole, which can then still become a proper error. */
  begin(contentType: string): Record<string, string> | null;
  /** What to write for a chunk; null writes nothing. */
  chunk(chunk: Buffer): Uint8Array | string | null;
  /** What to write last (the whole answer, where it is sent whole); an error where the answer was cut. */
  end(): Uint8Array | string | GatewayError | null;
}

export interface Generation {
  readonly model: CachedModel;
  readonly path: string;
  readonly body: Uint8Array;
  /** Whether the engine is asked for a stream. */
  readonly stream: boolean;
  readonly translator: Translator;
  /** The context size that the request carries. */
  readonly contextSize?: number;
  /** How long the model stays loaded after it. */
  readonly keepAlive?: KeepAlive;
}

export interface ExchangeDeps {
  readonly admission: Admission;
  readonly upstream: Upstream;
  readonly chatContext: ChatContext;
  readonly idle: IdleUnload;
  /** The gateway stops: answers still in flight end in an error frame. */
  readonly cutOff: AbortSignal;
  readonly onFailure: (error: GatewayError, model: string) => void;
}

const attempts = 3;

/** Takes the reply over from Fastify; resolves when the answer is through, whichever way. */
export async function runGeneration(deps: ExchangeDeps, reply: FastifyReply, generation: Generation): Promise<void> {
  reply.hijack();
  const raw = createRawReply(reply.raw);
  const left = new AbortController();
  raw.onLeave(() => left.abort());
  let lease: Lease | null = null;
  try {
    const contextSize = await deps.chatContext.apply(generation.model, generation.contextSize, left.signal);
    const headers = contextSize === null ? {} : { "x-context-size": String(contextSize) };
    for (let attempt = 1; ; attempt++) {
      lease = await deps.admission.acquire(generation.model.upstreamId, left.signal);
      deps.idle.keep(generation.model.upstreamId, generation.keepAlive ?? { kind: "default" });
      if ((await exchange(deps, lease, raw, left.signal, generation, headers)) === "done") return;
      // Its process ended between our looking and our asking: nothing was answered, so the next instance is asked.
      lease.release();
      if (attempt === attempts)
        throw new GatewayError("upstream_failed", `${generation.model.id} does not accept requests`);
      await deps.admission.replace(lease.instance);
    }
  } catch (error) {
    if (left.signal.aborted) return;
    const failure = toGatewayError(error);
    if (failure.status >= 500) deps.onFailure(failure, generation.model.id);
    fail(raw, generation.translator, failure);
  } finally {
    lease?.release();
  }
}

function exchange(
  { upstream, cutOff }: ExchangeDeps,
  lease: Lease,
  raw: RawReply,
  left: AbortSignal,
  generation: Generation,
  headers: Readonly<Record<string, string>>,
): Promise<"done" | "refused"> {
  const { translator } = generation;
  return new Promise((resolve) => {
    let status = 0;
    const errorText: Buffer[] = [];
    const over = new AbortController();
    const settle = (outcome: "done" | "refused"): void => {
      over.abort();
      resolve(outcome);
    };
    const current = upstream.send(lease.instance, generation, {
      start: (code, answered) => {
        status = code;
        if (code !== 200) return;
        const streamHeaders = translator.begin(String(answered["content-type"] ?? ""));
        if (streamHeaders) raw.head(200, { ...streamHeaders, ...headers });
      },
      data: (chunk) => {
        if (status !== 200) {
          errorText.push(chunk);
          return true;
        }
        const text = translator.chunk(chunk);
        return text === null ? true : raw.write(text);
      },
      end: () => {
        if (status === 200) finish(raw, translator, headers);
        else answer(raw, renderEngineError(translator.family, status, Buffer.concat(errorText).toString("utf8")));
        settle("done");
      },
      fail: (error) => {
        if (status === 0 && isRefusal(error)) return settle("refused");
        if (error.code !== "cancelled") fail(raw, translator, error);
        settle("done");
      },
    });
    raw.onDrain(() => current.resume());
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

function finish(raw: RawReply, translator: Translator, headers: Readonly<Record<string, string>>): void {
  const last = translator.end();
  if (last instanceof GatewayError) return fail(raw, translator, last);
  if (!raw.headersSent()) return answer(raw, { status: 200, body: last ?? "" }, headers);
  if (last !== null) raw.write(last);
  raw.end();
}

function fail(raw: RawReply, { family }: Translator, error: GatewayError): void {
  if (raw.headersSent()) {
    raw.write(errorFrame(family, error));
    raw.end();
  } else {
    answer(raw, renderError(family, error), error.status === 503 ? { "retry-after": "5" } : {});
  }
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
