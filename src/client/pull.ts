// Pulls a model and reports progress.
import type { NativePullRecord } from "../../schemas/ollama.ts";
import { GatewayClientError } from "./error.ts";
import { linesOf } from "./streams.ts";
import { type CallOptions, connectionLost, type Transport } from "./transport.ts";

export interface PullOptions extends CallOptions {
  /** Each record as it comes; a `digest` stands for one file, `completed` and `total` are its bytes. */
  readonly onProgress?: (record: NativePullRecord) => void;
  /** The pull continues when this call is aborted or its connection breaks. */
  readonly keep?: boolean;
}

/**
 * Resolves once the router lists the model. An abort cancels the pull, unless it is kept or another client waits for it too.
 * Errors: `GatewayClientError`, with status 200 if it failed after it began, and code `cut` if the connection broke.
 */
export async function pullModel(transport: Transport, model: string, options: PullOptions): Promise<void> {
  const { onProgress, signal, keep } = options;
  const json = keep === undefined ? { model } : { model, keep };
  const response = await transport.send("/api/pull", { method: "POST", json, signal });
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
