// The lines that two texts have in common, in order. Pure.

/** Pairs of lines that are compared at most; 2,000 lines that all differ take 20 ms. */
const mostPairs = 4_000_000;

/** Their longest common sequence, as indexes in both. Null where the texts are too long. */
export function commonLines(
  from: readonly string[],
  to: readonly string[],
): readonly (readonly [from: number, to: number])[] | null {
  let start = 0;
  while (start < from.length && start < to.length && from[start] === to[start]) start++;
  let [a, b] = [from.length, to.length];
  while (a > start && b > start && from[a - 1] === to[b - 1]) [a, b] = [a - 1, b - 1];
  const width = b - start + 1;
  if ((a - start + 1) * width > mostPairs) return null;
  // Of the longest sequence that lines from i and from j on have in common.
  const lengths = new Uint16Array((a - start + 1) * width);
  const lengthAt = (i: number, j: number): number => lengths[i * width + j] ?? 0;
  for (let i = a - start - 1; i >= 0; i--)
    for (let j = b - start - 1; j >= 0; j--)
      lengths[i * width + j] =
        from[start + i] === to[start + j]
          ? lengthAt(i + 1, j + 1) + 1
          : Math.max(lengthAt(i + 1, j), lengthAt(i, j + 1));
  const pairs = Array.from({ length: start }, (_, index): [number, number] => [index, index]);
  for (let i = 0, j = 0; i < a - start && j < b - start; ) {
    if (from[start + i] === to[start + j]) pairs.push([start + i++, start + j++]);
    else if (lengthAt(i + 1, j) >= lengthAt(i, j + 1)) i++;
    else j++;
  }
  for (; a < from.length; a++, b++) pairs.push([a, b]);
  return pairs;
}
