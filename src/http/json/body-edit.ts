// Changes top-level members of a JSON object in its raw bytes, as body-scan.ts found them; the rest stays to the byte.
import { type BodyScan, skipSpace } from "./body-scan.ts";

export interface BodyChange {
  /** JSON texts (a string with its quotes) by key: replaced where the scan found the key, else appended. */
  readonly set?: Readonly<Record<string, string>>;
  /** Keys that are taken out, each time they occur. The scan must have been asked for them. */
  readonly remove?: readonly string[];
}

type Edit = readonly [start: number, end: number, replacement: string];

const comma = 0x2c;
const encoder = new TextEncoder();

/** A changed copy of `body`. */
export function editBody(body: Uint8Array, scan: BodyScan, change: BodyChange): Uint8Array {
  return Buffer.concat(editedParts(body, scan, change));
}

/** What is to be sent in place of `body`: pieces of it, as a copy of 30 MB takes 20 ms. What is appended wins over a duplicate that the scan was not asked for. */
export function editedParts(body: Uint8Array, scan: BodyScan, { set = {}, remove = [] }: BodyChange): Uint8Array[] {
  const { edits, left } = removals(body, scan, remove);
  let appended = "";
  for (const [key, json] of Object.entries(set)) {
    const span = remove.includes(key) ? undefined : scan.members.get(key);
    if (span) edits.push([span.start, span.end, json]);
    else appended += `${left || appended !== "" ? "," : ""}${JSON.stringify(key)}:${json}`;
  }
  edits.sort((a, b) => a[0] - b[0]);
  return spliceAll(body, [...edits, [scan.close, scan.close, appended]]);
}

/** Each removed member takes a comma along: the one before it, or the one after it where nothing before it stays. */
function removals(body: Uint8Array, scan: BodyScan, keys: readonly string[]): { edits: Edit[]; left: boolean } {
  const edits: Edit[] = [];
  /** Where the next member begins if everything before it goes. */
  let front = skipSpace(body, scan.open + 1);
  for (const { key, start, end } of scan.occurrences) {
    if (!keys.includes(key)) continue;
    const after = skipSpace(body, end);
    if (start === front) {
      front = body[after] === comma ? skipSpace(body, after + 1) : scan.close;
      edits.push([start, front, ""]);
    } else {
      edits.push([body.lastIndexOf(comma, start - 1), end, ""]);
    }
  }
  return { edits, left: front < scan.close };
}

function spliceAll(body: Uint8Array, edits: readonly Edit[]): Uint8Array[] {
  const parts: Uint8Array[] = [];
  let read = 0;
  for (const [start, end, text] of edits) {
    parts.push(body.subarray(read, start), encoder.encode(text));
    read = end;
  }
  parts.push(body.subarray(read));
  return parts;
}
