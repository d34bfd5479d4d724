// What the gateway reads of a request of the compatible family: the model, whether it streams, and the members that are
// the gateway's own. Those are taken out; the rest of the body goes on to the byte.

import type { Catalog } from "../../catalog/catalog.ts";
import { GatewayError } from "../../core/errors.ts";
import { isJsonObject } from "../../core/json.ts";
import { type KeepAlive, parseKeepAlive } from "../../core/keep-alive.ts";
import type { CachedModel } from "../../plan/observed.ts";
import { type BodyChange, editBody, editedParts } from "../json/body-edit.ts";
import { type BodyScan, type ScanResult, scanBody } from "../json/body-scan.ts";
import { type JsonSpan, readValue } from "../json/body-values.ts";
import { notJson, scanInTurns, smallBody, withoutMark } from "../server/json-body.ts";

export interface CompatRequest {
  readonly model: CachedModel;
  readonly stream: boolean;
  /** In pieces. */
  readonly body: readonly Uint8Array[];
  /** Tokens. */
  readonly contextSize?: number;
  readonly keepAlive?: KeepAlive;
}

const own = ["ctx_size", "num_ctx", "keep_alive"] as const;
const read = ["options", ...own] as const;

/** Bytes up to which a body is parsed: faster than our scan, and within 0.1 ms whatever is in it. */
const shortBody = 16 * 1024;

/** At once for a short body in which nothing has to be changed. Errors: `invalid_request`, `model_not_found`. */
export function readRequest(
  bytes: Buffer | undefined,
  catalog: Pick<Catalog, "resolve">,
): CompatRequest | Promise<CompatRequest> {
  const body = withoutMark(bytes ?? Buffer.alloc(0));
  return (body.length <= shortBody ? readPlain(body, catalog) : null) ?? readAny(body, catalog);
}

/** Null for what has to be scanned: to be changed, or to find what is wrong with it. */
function readPlain(body: Buffer, catalog: Pick<Catalog, "resolve">): CompatRequest | null {
  let value: unknown;
  try {
    value = JSON.parse(body.toString());
  } catch {
    return null;
  }
  if (!isJsonObject(value)) return null;
  const { model: name, stream = false } = value;
  if (typeof name !== "string" || name === "" || typeof stream !== "boolean") return null;
  for (const key of read) if (value[key] !== undefined) return null;
  const model = catalog.resolve(name);
  return name === model.id ? { model, stream, body: [body] } : null;
}

async function readAny(body: Buffer, catalog: Pick<Catalog, "resolve">): Promise<CompatRequest> {
  const scan = scanned(body, await scanInTurns(body, ["model", "stream", ...read], { mostValues }));
  const name = nameIn(body, scan);
  const stream = scan.members.get("stream");
  if (stream && stream.kind !== "boolean" && stream.kind !== "null") throw refusal("stream", "must be true or false");
  const options = readOptions(body, scan.members.get("options"));
  const contextSize =
    sizeOf(body, scan, "ctx_size") ?? sizeOf(body, scan, "num_ctx") ?? options?.contextSize ?? undefined;
  const keepAlive = keepAliveOf(body, scan.members.get("keep_alive"));
  const model = catalog.resolve(name);
  const change: BodyChange = {
    set: {
      ...(name === model.id ? {} : { model: JSON.stringify(model.id) }),
      ...(options?.edited === undefined ? {} : { options: options.edited }),
    },
    remove: own.filter((key) => scan.members.has(key)),
  };
  return {
    model,
    stream: readValue(body, stream) === true,
    body: isEmpty(change) ? [body] : editedParts(body, scan, change),
    ...(contextSize === undefined ? {} : { contextSize }),
    ...(keepAlive === undefined ? {} : { keepAlive }),
  };
}

/** Only the model that a small body names, for routes that ask nothing of the engine. */
export function readModelName(bytes: Buffer | undefined): string {
  const body = withoutMark(bytes ?? Buffer.alloc(0));
  return nameIn(body, scanned(body, scanBody(body, ["model"])));
}

function nameIn(body: Buffer, { members }: BodyScan): string {
  const name = readValue(body, members.get("model"));
  if (typeof name !== "string" || name === "") throw refusal("model", "is missing or no string");
  return name;
}

/** The most that is sent for a reason: thousands of texts to embed, as tokens. */
const mostValues = 4_000_000;

function scanned(body: Buffer, scan: ScanResult): BodyScan {
  if (body.length === 0) throw new GatewayError("invalid_request", "the body is empty; a JSON object is expected");
  if (scan.ok) return scan;
  throw notJson(body, scan.position);
}

function refusal(param: string, must: string): GatewayError {
  return new GatewayError("invalid_request", `${param} ${must}`, { param });
}

function sizeOf(body: Uint8Array, scan: BodyScan, key: string, param = key): number | undefined {
  const span = scan.members.get(key);
  const value = readValue(body, span);
  if (span === undefined || value === null) return undefined;
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 1)
    throw refusal(param, "must be a whole number of tokens, 1 or more");
  return value;
}

/** Ollama's `options`, which some of its users send along; of them only the context size is read. */
function readOptions(
  body: Uint8Array,
  span: JsonSpan | undefined,
): { readonly contextSize?: number | undefined; readonly edited: string } | undefined {
  if (span?.kind !== "object") return undefined;
  const text = body.subarray(span.start, span.end);
  if (text.length > smallBody) throw refusal("options", `must not exceed ${smallBody} bytes`);
  const scan = scanBody(text, ["num_ctx"]);
  if (!scan.ok || !scan.members.has("num_ctx")) return undefined;
  const edited = editBody(text, scan, { remove: ["num_ctx"] });
  return { contextSize: sizeOf(text, scan, "num_ctx", "options.num_ctx"), edited: Buffer.from(edited).toString() };
}

function keepAliveOf(body: Uint8Array, span: JsonSpan | undefined): KeepAlive | undefined {
  if (span === undefined) return undefined;
  const value = readValue(body, span);
  const keepAlive = value === undefined ? null : parseKeepAlive(value);
  if (!keepAlive) throw refusal("keep_alive", 'must be seconds or a duration such as "5m"');
  return keepAlive;
}

function isEmpty({ set = {}, remove = [] }: BodyChange): boolean {
  return Object.keys(set).length === 0 && remove.length === 0;
}
