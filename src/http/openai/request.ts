// What the gateway reads of a request of the compatible family. Only the model's name is changed, to the one that the router
// knows it by; the rest of the body goes on to the byte, as the engine takes no notice of members that are not its own.
import type { Catalog } from "../../catalog/catalog.ts";
import { GatewayError } from "../../core/errors.ts";
import { isJsonObject, parseJson } from "../../core/json.ts";
import { type KeepAlive, parseKeepAlive } from "../../core/keep-alive.ts";
import type { CachedModel } from "../../plan/observed.ts";
import { readValue, type ScanResult, scanBody } from "../json/body-scan.ts";
import { notJson, scanInTurns, withoutMark } from "../server/json-body.ts";
import { shortBody } from "../server/plain-requests.ts";

export interface CompatRequest {
  readonly model: CachedModel;
  readonly stream: boolean;
  /** In pieces. */
  readonly body: readonly Uint8Array[];
  /** Tokens. */
  readonly contextSize: number | undefined;
  readonly keepAlive: KeepAlive;
}

const read = ["model", "stream", "ctx_size", "num_ctx", "keep_alive"] as const;

type Members = Readonly<Partial<Record<(typeof read)[number], unknown>>>;

/** The most that is sent for a reason: thousands of texts to embed, as tokens. */
const mostValues = 4_000_000;

/** At once for a short body. Errors: `invalid_request`, `model_not_found`. */
export function readRequest(bytes: Buffer, catalog: Pick<Catalog, "resolve">): CompatRequest | Promise<CompatRequest> {
  const body = withoutMark(bytes);
  if (body.length === 0) throw new GatewayError("invalid_request", "the body is empty; a JSON object is expected");
  const members = body.length <= shortBody ? parsed(body) : null;
  return members ? requestOf(body, members, catalog) : readScanned(body, catalog);
}

/** Null for what is none: the scan finds what is wrong with it. */
function parsed(body: Buffer): Members | null {
  const value = parseJson(body.toString());
  return isJsonObject(value) ? value : null;
}

async function readScanned(body: Buffer, catalog: Pick<Catalog, "resolve">): Promise<CompatRequest> {
  const scan = await scanInTurns(body, read, { mostValues });
  if (!scan.ok) throw notJson(body, scan.position);
  const members: Members = Object.fromEntries(read.map((key) => [key, readValue(body, scan.members.get(key))]));
  return requestOf(body, members, catalog, scan);
}

function requestOf(
  body: Buffer,
  members: Members,
  catalog: Pick<Catalog, "resolve">,
  scan?: ScanResult,
): CompatRequest {
  const { model: name, stream } = members;
  if (typeof name !== "string" || name === "") throw refusal("model", "is missing or no string");
  if (stream !== undefined && stream !== null && typeof stream !== "boolean")
    throw refusal("stream", "must be true or false");
  const contextSize = sizeOf(members, "ctx_size") ?? sizeOf(members, "num_ctx");
  const keepAlive = parseKeepAlive(members.keep_alive);
  if (!keepAlive) throw refusal("keep_alive", 'must be seconds or a duration such as "5m"');
  const model = catalog.resolve(name);
  return {
    model,
    stream: stream === true,
    body: name === model.id ? [body] : renamed(body, scan ?? scanBody(body, read), model.id),
    contextSize,
    keepAlive,
  };
}

function sizeOf(members: Members, key: "ctx_size" | "num_ctx"): number | undefined {
  const value = members[key];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 1)
    throw refusal(key, "must be a whole number of tokens, 1 or more");
  return value;
}

function refusal(param: string, must: string): GatewayError {
  return new GatewayError("invalid_request", `${param} ${must}`, { param });
}

/** With another name of the model, in pieces: a copy of 30 MB takes 20 ms. */
function renamed(body: Buffer, scan: ScanResult, id: string): Uint8Array[] {
  const name = scan.ok ? scan.members.get("model") : undefined;
  return name ? [body.subarray(0, name.start), Buffer.from(JSON.stringify(id)), body.subarray(name.end)] : [body];
}
