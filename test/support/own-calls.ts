// Calls of the gateway's own routes, and what a test reads from their answers.
import type { TestGateway } from "./gateway.ts";

/** The code of an error answer in the gateway's own shape. */
export function codeOf({ body }: { readonly body: Record<string, unknown> }): string | undefined {
  return (body["error"] as { readonly code?: string } | undefined)?.code;
}

export function messageOf({ body }: { readonly body: Record<string, unknown> }): string {
  return (body["error"] as { readonly message?: string } | undefined)?.message ?? JSON.stringify(body);
}

/** `context_length` by model. */
export async function contextLengths(gateway: TestGateway): Promise<Record<string, unknown>> {
  const { body } = await gateway.json("/beta/v1/models");
  return Object.fromEntries(
    (body["data"] as { id: string; context_length?: number }[]).map((model) => [model.id, model.context_length]),
  );
}
