// The members that a variant of a model adds to a request, or replaces in it. Members count whole: an object of the client's is not
// merged with one of the variant. Pure.
import type { Json } from "../../core/json.ts";
import type { Variant } from "../../desired/document/document.ts";
import type { JsonSpan, ScanResult } from "./body-scan.ts";

/**
 * Members of one meaning: llama-server (build 11669) takes the limit from `n_predict` before it looks for `max_tokens`, so a limit of
 * the client counts under any name, and a forced one replaces them all. `written`: what each API of the engine reads.
 */
const meanings = [
  { names: ["max_tokens", "max_completion_tokens", "max_output_tokens", "n_predict"], written: ["max_tokens"] },
  { names: ["stop", "stop_sequences"], written: ["stop", "stop_sequences"] },
] as const;

interface Meaning {
  readonly names: readonly string[];
  readonly written: readonly string[];
}

function meaningOf(member: string): Meaning {
  const own = [member];
  return meanings.find(({ names }) => (names as readonly string[]).includes(member)) ?? { names: own, written: own };
}

/** Members of a request that decide what the variant writes. */
export function membersRead({ set }: Variant): readonly string[] {
  return [...new Set(Object.keys(set).flatMap((member) => meaningOf(member).names))];
}

/** What is written into a request; `isSent`: null is as good as absent. */
function membersWritten({ set, force = [] }: Variant, isSent: (member: string) => boolean): ReadonlyMap<string, Json> {
  const written = new Map<string, Json>();
  for (const [member, value] of Object.entries(set)) {
    const { names, written: own } = meaningOf(member);
    const sent = names.filter(isSent);
    if (sent.length > 0 && !force.includes(member)) continue;
    for (const name of sent.length > 0 ? sent : own) written.set(name, value);
  }
  return written;
}

/** A request that is made of values. */
export function filledObject<T extends object>(request: T, variant: Variant | null): T {
  if (!variant) return request;
  const members = new Map<string, unknown>(Object.entries(request));
  return { ...request, ...Object.fromEntries(membersWritten(variant, (name) => (members.get(name) ?? null) !== null)) };
}

/**
 * A body with the model's own id and what its variant writes, in pieces: a copy of 30 MB takes 20 ms. `scan`: of the member `model` and
 * those of {@link membersRead}.
 */
export function filledBody(body: Uint8Array, scan: ScanResult, id: string, variant: Variant | null): Uint8Array[] {
  const spans: ReadonlyMap<string, JsonSpan> = scan.ok ? scan.members : new Map();
  const model = spans.get("model");
  if (!model) return [body];
  const isSent = (name: string): boolean => spans.has(name) && !isNull(body, spans.get(name));
  let name = JSON.stringify(id);
  const edits: (JsonSpan & { readonly text: string })[] = [];
  for (const [member, value] of variant ? membersWritten(variant, isSent) : []) {
    const span = spans.get(member);
    const text = JSON.stringify(value);
    if (span) edits.push({ ...span, text });
    else name += `,${JSON.stringify(member)}:${text}`;
  }
  edits.push({ ...model, text: name });
  const pieces: Uint8Array[] = [];
  let at = 0;
  for (const { start, end, text } of edits.toSorted((a, b) => a.start - b.start)) {
    pieces.push(body.subarray(at, start), Buffer.from(text));
    at = end;
  }
  return [...pieces, body.subarray(at)];
}

/** `start` is that of a value: no other begins so. */
function isNull(body: Uint8Array, span: JsonSpan | undefined): boolean {
  return span !== undefined && body[span.start] === 0x6e;
}
