// The part of a file that a request asks for. Pure.

/** `to` is the byte behind the last one; `isWhole`: no part was asked for. Null: the file has no such part. */
export interface FilePart {
  readonly from: number;
  readonly to: number;
  readonly isWhole: boolean;
}

/** Of several parts, and of a form that is none, it is the whole file. `etag` quoted, as it is sent. */
export function partOf(
  { range, "if-range": ifRange }: { readonly range?: string | undefined; readonly "if-range"?: string | undefined },
  { size, etag }: { readonly size: number; readonly etag: string },
): FilePart | null {
  const [, first = "", last = ""] = /^bytes=(\d*)-(\d*)$/.exec(range ?? "") ?? [];
  const isOther = ifRange !== undefined && ifRange !== etag;
  if (isOther || (first === "" && last === "") || (first !== "" && last !== "" && Number(last) < Number(first)))
    return { from: 0, to: size, isWhole: true };
  const from = first === "" ? Math.max(0, size - Number(last)) : Number(first);
  const to = first === "" || last === "" ? size : Math.min(size, Number(last) + 1);
  return from < to ? { from, to, isWhole: false } : null;
}
