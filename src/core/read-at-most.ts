// Reads a whole response body up to a limit. Pure.

/** Errors: `tooLong()` beyond `limit` bytes, and whatever the body throws. */
export async function readAtMost(body: AsyncIterable<unknown>, limit: number, tooLong: () => Error): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of body) {
    if (!Buffer.isBuffer(chunk)) continue;
    length += chunk.length;
    if (length > limit) throw tooLong();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, length);
}
