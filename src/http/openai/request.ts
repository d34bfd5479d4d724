// What the gateway reads of a request of the compatible family. Only the model's name is changed, to the one that the router
// knows it by, and what a variant sets; the rest of the body goes on to the byte, as the engine takes no notice of members that are
// not its own.
import type { Catalog } from "../../catalog/catalog.ts";
import { GatewayError } from "../../core/errors.ts";
import { isJsonObject, parseJson } from "../../core/json.ts";
import { type KeepAlive, parseKeepAlive } from "../../core/keep-alive.ts";
import type { Variant } from "../../desired/document/document.ts";
import type { CachedModel } from "../../plan/observed.ts";
import { readValue, type ScanResult, scanBody } from "../json/body-scan.ts";
import { filledBody, membersRead } from "../json/fill-members.ts";
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

type Names = Pick<Catalog, "named">;

/** At once for a short body. Errors: `invalid_request`, `model_not_found`. */
export function readRequest(bytes: Buffer, catalog: Names): CompatRequest | Promise<CompatRequest> {
  const body = withoutMark(bytes);
  if (body.length === 0) throw new GatewayError("invalid_request", "the body is empty; a JSON object is expected");
  const members = body.length <= shortBody ? parsed(body) : null;
  if (!members) return readScanned(body, catalog);
  const asked = askedOf(members, catalog);
  return requestOf(body, asked, isPlain(asked) ? null : scanBody(body, membersOf(asked)));
}

/** Null for what is none: the scan finds what is wrong with it. */
function parsed(body: Buffer): Members | null {
  const value = parseJson(body.toString());
  return isJsonObject(value) ? value : null;
}

async function readScanned(body: Buffer, catalog: Names): Promise<CompatRequest> {
  const scan = await scanInTurns(body, read, { mostValues });
  if (!scan.ok) throw notJson(body, scan.position);
  const members: Members = Object.fromEntries(read.map((key) => [key, readValue(body, scan.members.get(key))]));
  const asked = askedOf(members, catalog);
  // Which members a variant reads is known by its name only.
  return requestOf(body, asked, asked.variant ? await scanInTurns(body, membersOf(asked), { mostValues }) : scan);
}

interface Asked extends Omit<CompatRequest, "body"> {
  /** As the client wrote it. */
  readonly name: string;
  readonly variant: Variant | null;
}

function askedOf(members: Members, catalog: Names): Asked {
  const { model: name, stream } = members;
  if (typeof name !== "string" || name === "") throw refusal("model", "is missing or no string");
  if (stream !== undefined && stream !== null && typeof stream !== "boolean")
    throw refusal("stream", "must be true or false");
  const contextSize = sizeOf(members, "ctx_size") ?? sizeOf(members, "num_ctx");
  const keepAlive = parseKeepAlive(members.keep_alive);
  if (!keepAlive) throw refusal("keep_alive", 'must be seconds or a duration such as "5m"');
  // No spread: it was a twentieth of a chat's processor time.
  const { model, variant } = catalog.named(name);
  return { model, variant, name, stream: stream === true, contextSize, keepAlive };
}

/** The body goes on as it is. */
function isPlain({ name, model, variant }: Asked): boolean {
  return variant === null && name === model.id;
}

function membersOf({ variant }: Asked): readonly string[] {
  return ["model", ...(variant ? membersRead(variant) : [])];
}

/** `scan`: null where none was needed. */
function requestOf(body: Buffer, asked: Asked, scan: ScanResult | null): CompatRequest {
  const { model, variant, stream, contextSize, keepAlive } = asked;
  const pieces = scan === null || isPlain(asked) ? [body] : filledBody(body, scan, model.id, variant);
  return { model, stream, body: pieces, contextSize, keepAlive };
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
