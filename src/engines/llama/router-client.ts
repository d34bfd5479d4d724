// The router's management routes as functions. Decides nothing.
import { GatewayError, reasonOf } from "../../core/errors.ts";
import { eachEvent, LineBlocks } from "../../core/event-stream.ts";
import { parseJson } from "../../core/json.ts";
import type { RouterModel } from "../../plan/observed.ts";
import { lookMs } from "../../state/repeat.ts";
import { askServer, type EngineAnswer, type Question, unshared } from "./ask-server.ts";
import { Connection } from "./connections.ts";
import { isHealthyNow } from "./health.ts";

export type RouterClient = ReturnType<typeof createRouterClient>;

export interface RouterEvent {
  readonly model: string;
  readonly event: string;
  readonly data?: unknown;
}

const answerMs = 5_000;
/** Its list responds in milliseconds, also during loads; the loop waits for it. */
const listMs = 2_000;
/** A timer that was cleared wakes the process all the same: so in the moment of the next look. */
const healthMs = lookMs;
const wakeMs = 250;

interface ListedModel {
  readonly id: string;
  readonly status?: { readonly value?: string; readonly args?: readonly string[]; readonly failed?: boolean };
  readonly meta?: { readonly n_ctx?: number };
}

export function createRouterClient(origin: string, key: string) {
  const router = { origin, key };

  async function call(question: Question, timeoutMs: number): Promise<EngineAnswer> {
    try {
      return await askServer(router, question, timeoutMs);
    } catch (error) {
      const { path, body } = question;
      const call = `${body ? "POST" : "GET"} ${path.split("?")[0] ?? ""}`;
      const message = `the router does not respond to ${call}: ${reasonOf(error)}`;
      throw new GatewayError("router_unavailable", message, { cause: error });
    }
  }

  async function management(path: string, id: string, done: string): Promise<void> {
    const { status, text } = await call({ path, body: { model: id } }, answerMs);
    // Already in that state is a success.
    if (status === 200 || (status === 400 && text.includes(done))) return;
    throw new GatewayError("router_unavailable", `the router answered ${path} with ${status}: ${messageOf(text)}`);
  }

  return {
    origin,
    healthy: (): Promise<boolean> => isHealthyNow(router, healthMs),
    models: async (): Promise<readonly RouterModel[]> => {
      const { status, text } = await call({ path: "/models" }, listMs);
      if (status !== 200) throw new GatewayError("router_unavailable", `the router answered /models with ${status}`);
      return modelsIn(text);
    },
    /** Reloads its preset and cache; returns the list after it. Errors: `preset_foreign` with the router's message, `router_unavailable`. */
    reload: async (timeoutMs: number): Promise<readonly RouterModel[]> => {
      const { status, text } = await call({ path: "/models?reload=1" }, timeoutMs);
      if (status === 200) return modelsIn(text);
      throw new GatewayError(
        status === 500 ? "preset_foreign" : "router_unavailable",
        `the router refused to reload: ${messageOf(text)}`,
      );
    },
    load: (id: string) => management("/models/load", id, "already running"),
    unload: (id: string) => management("/models/unload", id, "not running"),
    /** Calls back at every event until the signal aborts or the router ends; `onOpen`: earlier events were not received. */
    watch: (onEvent: (event: RouterEvent) => void, signal: AbortSignal, onOpen: () => void): Promise<void> =>
      new Promise((resolve, reject) => {
        const connection = new Connection(origin, unshared);
        const blocks = new LineBlocks();
        const leave = (): void => {
          connection.destroy();
          resolve();
        };
        if (signal.aborted) return leave();
        signal.addEventListener("abort", leave, { once: true });
        connection.send(
          router,
          { path: "/models/sse", body: null, isLast: true },
          {
            onHead: (status) => {
              if (status === 200) return onOpen();
              reject(new GatewayError("not_supported", `the router answered /models/sse with ${status}`));
              connection.destroy();
            },
            onBody: (bytes) => {
              const lines = blocks.lines(bytes);
              if (lines) eachEvent(lines, (data) => onEvent(JSON.parse(data) as RouterEvent));
              return true;
            },
            onEnd: resolve,
            onFailed: (error) => (error ? reject(error) : resolve()),
          },
        );
      }),
    /** Makes it detect that a subscriber has left, which it does only when it sends an event, or once a second. */
    wake: async (): Promise<void> => {
      // The only read-only request that makes an event. Its response does not matter.
      await call({ path: "/models?reload=1" }, wakeMs).catch(() => undefined);
    },
  };
}

function modelsIn(text: string): readonly RouterModel[] {
  return (JSON.parse(text) as { data: readonly ListedModel[] }).data.map(toRouterModel);
}

function toRouterModel({ id, status, meta }: ListedModel): RouterModel {
  return {
    id,
    value: status?.value ?? "unloaded",
    failed: status?.failed ?? false,
    args: status?.args ?? [],
    nCtx: meta?.n_ctx ?? null,
  };
}

/** Of a body with an error. */
export function messageOf(text: string): string {
  const body = parseJson(text) as { error?: { message?: string } } | null;
  return body?.error?.message ?? text.slice(0, 300);
}
