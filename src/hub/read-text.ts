// Small files of the hub, read whole.

/** Null where it is longer than `limit` bytes. Throws what the body does. */
export async function readText(body: AsyncIterable<unknown>, limit: number): Promise<string | null> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of body) {
    if (!Buffer.isBuffer(chunk)) continue;
    length += chunk.length;
    if (length > limit) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, length).toString("utf8");
}
