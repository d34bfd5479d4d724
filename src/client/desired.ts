// The desired document: read, planned and changed.
import type { DesiredBody } from "../../schemas/desired.ts";
import type { DocumentInput } from "../../schemas/document.ts";
import type { PlanBody } from "../../schemas/plan.ts";
import { GatewayClientError } from "./error.ts";
import type { CallOptions, Transport } from "./transport.ts";

export interface Desired extends DesiredBody {
  /** For `etag` of a change: it is refused (412) if the document has changed since. */
  readonly etag: string;
}

export interface ChangeOptions extends CallOptions {
  readonly etag?: string;
  /** Resolve once it is reconciled. */
  readonly wait?: boolean;
  /** Seconds to wait. */
  readonly timeout?: number;
}

/** A JSON merge patch. `models` may be an object by id, where null takes a model out. */
export type DocumentPatch = Readonly<Record<string, unknown>>;

export interface DesiredCalls {
  get(options?: CallOptions): Promise<Desired>;
  /** Replaces the document. */
  put(document: DocumentInput, options?: ChangeOptions): Promise<Desired>;
  patch(patch: DocumentPatch, options?: ChangeOptions): Promise<Desired>;
  /** The plan of a patch; changes nothing. */
  planPatch(patch: DocumentPatch, options?: CallOptions): Promise<PlanBody>;
}

const path = "/api/desired";

export function desiredCalls(transport: Transport): DesiredCalls {
  async function change(method: "PUT" | "PATCH", json: unknown, options: ChangeOptions = {}): Promise<Desired> {
    const { etag, wait, timeout, signal } = options;
    const headers = etag === undefined ? {} : { "if-match": etag };
    return withEtag(await transport.send(path, { method, json, query: { wait, timeout }, headers, signal }));
  }

  return {
    get: async (options = {}) => withEtag(await transport.send(path, options)),
    put: (document, options) => change("PUT", document, options),
    patch: (patch, options) => change("PATCH", patch, options),
    planPatch: (json, { signal } = {}) =>
      transport.json(path, { method: "PATCH", json, query: { dryRun: true }, signal }),
  };
}

async function withEtag(response: Response): Promise<Desired> {
  const etag = response.headers.get("etag");
  if (etag === null) throw new GatewayClientError(response.status, "the response has no ETag");
  return { ...((await response.json()) as DesiredBody), etag };
}
