// How large a document may be. Checked before it is validated: 380,000 unknown keys blocked the event loop for 12.5 s, and a
// reconcile pass over 500 missing models takes 17 ms, over 2,000 of them 84 ms. Pure.

export const documentBounds = {
  /** Of the text. */
  bytes: 256 * 1024,
  models: 500,
  /** At any depth, maps and lists counted too. */
  values: 5_000,
} as const;

/** The bound that a document exceeds; null: none. */
export function boundProblem(value: unknown): { readonly path: readonly string[]; readonly message: string } | null {
  const { models, values, bytes } = documentBounds;
  const list = typeof value === "object" && value !== null ? (value as { models?: unknown }).models : undefined;
  if (Array.isArray(list) && list.length > models)
    return { path: ["models"], message: `${list.length} models exceed the limit of ${models}` };
  const found: unknown[] = [value];
  let length = 0;
  // Ends at the limit: with aliases a YAML document can contain one list a hundred times.
  for (const each of found) {
    if (typeof each === "string") length += each.length;
    if (Array.isArray(each)) found.push(...(each as unknown[]).slice(0, values));
    else if (typeof each === "object" && each !== null)
      for (const [key, member] of Object.entries(each)) {
        length += key.length;
        found.push(member);
      }
    if (found.length > values) return { path: [], message: tooManyValues };
    if (length > bytes) return { path: [], message: tooLong };
  }
  return null;
}

export const tooManyValues = `the document exceeds the limit of ${documentBounds.values} values`;
export const tooLong = `the document exceeds the limit of ${documentBounds.bytes} bytes`;

/** Problems that are listed; with 380,000 unknown keys the answer had 7 MB. */
export const mostListed = 20;

/**
 * A message may quote a value, and a value may be the whole document. On one line, for terminals: the key of a pull request's file could
 * clear the screen, and give commands to the CI that printed it.
 */
export function clip(text: string): string {
  const shown = text.slice(0, 300).replaceAll(/\p{Cc}+/gu, " ");
  return text.length > 300 ? `${shown}…` : shown;
}
