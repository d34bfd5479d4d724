// Responses that are streamed: a pull's progress, and the gateway's journal.
import type { EventData } from "../../schemas/desired.ts";
import type { NativePullRecord } from "../../schemas/ollama.ts";
import { connectionLost, GatewayClientError } from "./error.ts";
import type { CallOptions, Transport } from "./transport.ts";

export interface PullOptions extends CallOptions {
  /** Each record as it comes; a `digest` stands for one file, `completed` and `total` are its bytes. */
  readonly onProgress?: (record: NativePullRecord) => void;
  /** The pull continues when this call is aborted or its connection breaks. */
  readonly keep?: boolean;
}

export async function pullModel(
  transport: Transport,
  model: string,
  { onProgress, keep, signal }: PullOptions,
): Promise<void> {
  const response = await transport.send("/api/pull", { method: "POST", json: { model, keep }, signal });
  let last: NativePullRecord | null = null;
  try {
    for await (const line of linesOf(response.body)) {
      if (line.trim() === "") continue;
      last = JSON.parse(line) as NativePullRecord;
      if (last.error !== undefined) throw new GatewayClientError(response.status, last.error);
      onProgress?.(last);
    }
  } catch (error) {
    throw connectionLost(error, signal);
  }
  if (last?.status !== "success") throw new GatewayClientError(0, `the pull of ${model} broke off`, { code: "cut" });
}

export interface GatewayEvent {
  /** For `since`. */
  readonly id: string;
  /** `condition`, `action.finished`, `document`, … `reset`: events after `since` were missed, so read the status again. */
  readonly type: string;
  /** `at`, in ISO 8601, and the fields of the type. */
  readonly data: EventData;
}

export interface EventsOptions extends CallOptions {
  /** The id of the last event that was received: later events are replayed, as far as they are kept. `0`: all of them. */
  readonly since?: string;
}

export async function* followEvents(
  transport: Transport,
  { since, signal }: EventsOptions,
): AsyncGenerator<GatewayEvent, void, undefined> {
  try {
    const { body } = await transport.send("/api/events", { query: { since }, signal });
    let event = { id: "", type: "message", data: "" };
    for await (const line of linesOf(body)) {
      // What the end of the stream cuts off is no event.
      if (line === "") {
        if (event.data !== "") yield { ...event, data: JSON.parse(event.data) as EventData };
        event = { id: event.id, type: "message", data: "" };
      }
      const [, field, value = ""] = /^(id|event|data): ?(.*)$/.exec(line) ?? [];
      if (field === "id") event.id = value;
      else if (field === "event") event.type = value;
      else if (field === "data") event.data += value;
    }
  } catch (error) {
    if (signal?.aborted) return;
    throw connectionLost(error, signal);
  }
}

export interface LogOptions extends CallOptions {
  /** Default: all, by time. */
  readonly model?: string | undefined;
  /** How many of the last lines; default 1000. */
  readonly tail?: number | undefined;
}

export async function* followLogs(
  transport: Transport,
  { model, tail, signal }: LogOptions,
): AsyncGenerator<string, void, undefined> {
  try {
    const { body } = await transport.send("/api/logs", { query: { model, tail, follow: true }, signal });
    yield* linesOf(body);
  } catch (error) {
    if (signal?.aborted) return;
    throw connectionLost(error, signal);
  }
}

/** Lines without their ends. Leaving the loop closes the stream. */
export async function* linesOf(stream: ReadableStream<Uint8Array> | null): AsyncGenerator<string, void, undefined> {
  if (!stream) return;
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let isOver = false;
  try {
    while (!isOver) {
      const { done, value } = await reader.read();
      isOver = done;
      const parts = (rest + decoder.decode(value, { stream: !done })).split("\n");
      rest = parts.pop() ?? "";
      for (const line of parts) yield line.endsWith("\r") ? line.slice(0, -1) : line;
    }
    if (rest !== "") yield rest;
  } finally {
    // Cancelling a stream that has ended or broken rejects.
    if (!isOver) await reader.cancel().catch(() => undefined);
  }
}
