// The router's management routes as functions. Decides nothing.
import { GatewayError } from "../../core/errors.ts";
import { eachEvent, LineBlocks } from "../../core/event-stream.ts";
import { parseJson } from "../../core/json.ts";
import type { RouterModel } from "../../plan/observed.ts";
import { Pool } from "../../undici.ts";

export type RouterClient = ReturnType<typeof createRouterClient>;

export interface RouterEvent {
  readonly model: string;
  readonly event: string;
  readonly data?: unknown;
}

const answerMs = 5_000;
/** Its list responds in milliseconds, also during loads; the loop waits for it. */
const listMs = 2_000;
const wakeMs = 250;

interface ListedModel {
  readonly id: string;
  readonly status?: { readonly value?: string; readonly args?: readonly string[]; readonly failed?: boolean };
  readonly meta?: { readonly n_ctx?: number };
}

export function createRouterClient(origin: string, key: string) {
  // The router closes its connections after many responses: one connection per call never meets a dead one.
  const pool = new Pool(origin, {
    connections: 8,
    pipelining: 1,
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { timeout: 2_000 },
  });
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };

  async function call(
    method: "GET" | "POST",
    path: string,
    body: object | undefined,
    timeoutMs: number,
  ): Promise<{ status: number; text: string }> {
    try {
      const answer = await pool.request({
        method,
        path,
        headers,
        body: body === undefined ? null : JSON.stringify(body),
        reset: true,
        signal: AbortSignal.timeout(timeoutMs),
      });
      return { status: answer.statusCode, text: await answer.body.text() };
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      throw new GatewayError(
        "router_unavailable",
        `the router does not respond to ${method} ${path.split("?")[0] ?? ""}: ${message}`,
        { cause: error },
      );
    }
  }

  async function management(path: string, id: string, done: string): Promise<void> {
    const { status, text } = await call("POST", path, { model: id }, answerMs);
    // Already in that state is a success.
    if (status === 200 || (status === 400 && text.includes(done))) return;
    throw new GatewayError("router_unavailable", `the router answered ${path} with ${status}: ${messageOf(text)}`);
  }

  return {
    origin,
    healthy: async (): Promise<boolean> => {
      try {
        return (await call("GET", "/health", undefined, 2_000)).status === 200;
      } catch {
        return false;
      }
    },
    models: async (): Promise<readonly RouterModel[]> => {
      const { status, text } = await call("GET", "/models", undefined, listMs);
      if (status !== 200) throw new GatewayError("router_unavailable", `the router answered /models with ${status}`);
      return modelsIn(text);
    },
    /** Reloads its preset and cache; returns the list after it. Errors: `preset_foreign` with the router's message, `router_unavailable`. */
    reload: async (timeoutMs: number): Promise<readonly RouterModel[]> => {
      const { status, text } = await call("GET", "/models?reload=1", undefined, timeoutMs);
      if (status === 200) return modelsIn(text);
      throw new GatewayError(
        status === 500 ? "preset_foreign" : "router_unavailable",
        `the router refused to reload: ${messageOf(text)}`,
      );
    },
    load: (id: string) => management("/models/load", id, "already running"),
    unload: (id: string) => management("/models/unload", id, "not running"),
    /** Calls back at every event until the signal aborts or the router ends; `onOpen`: earlier events were not received. */
    watch: async (onEvent: (event: RouterEvent) => void, signal: AbortSignal, onOpen: () => void): Promise<void> => {
      const answer = await pool.request({ method: "GET", path: "/models/sse", headers, signal, reset: true });
      if (answer.statusCode !== 200) {
        await answer.body.dump();
        throw new GatewayError("not_supported", `the router answered /models/sse with ${answer.statusCode}`);
      }
      onOpen();
      const blocks = new LineBlocks();
      for await (const chunk of answer.body) {
        const lines = blocks.lines(chunk as Buffer);
        if (lines) eachEvent(lines, (data) => onEvent(JSON.parse(data) as RouterEvent));
      }
    },
    /** Makes it detect that a subscriber has left, which it does only when it sends an event, or once a second. */
    wake: async (): Promise<void> => {
      // The only read-only request that makes an event. Its response does not matter.
      await call("GET", "/models?reload=1", undefined, wakeMs).catch(() => undefined);
    },
    close: () => pool.destroy(),
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
