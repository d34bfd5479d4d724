// A hub with one large file, for the measurement of pulls: a process of its own, so that it does not share the puller's
// thread. Arguments: bytes of the file, bytes per second for each connection (0: no limit). Prints its address and the
// file's path; ends with its standard input.
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { withGgufHead } from "../support/cache-folder.ts";

const [size = 0, rate = 0] = process.argv.slice(2).map(Number);
// A pull takes no file that is no GGUF.
const block = withGgufHead(
  createHash("shake256", { outputLength: 1024 * 1024 })
    .update("pull")
    .digest(),
);
const commit = "c".repeat(40);
const path = "big-Q8_0.gguf";

function digest(): string {
  const hash = createHash("sha256");
  for (let at = 0; at < size; at += block.length) hash.update(block.subarray(0, Math.min(block.length, size - at)));
  return hash.digest("hex");
}

const sha256 = digest();

async function sendBytes(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? "");
  const from = Number(range?.[1] ?? 0);
  const to = range?.[2] ? Number(range[2]) + 1 : size;
  response.setHeader("X-Linked-Etag", `"${sha256}"`);
  response.setHeader("Accept-Ranges", "bytes");
  if (range) response.setHeader("Content-Range", `bytes ${from}-${to - 1}/${size}`);
  response.writeHead(range ? 206 : 200, { "Content-Length": to - from });
  const closed = once(response, "close");
  const began = performance.now();
  for (let at = from; at < to && !response.destroyed; ) {
    const start = at % block.length;
    const most = rate > 0 ? Math.min(block.length, Math.ceil(rate / 50)) : block.length;
    const part = block.subarray(start, Math.min(start + most, start + to - at));
    at += part.length;
    if (!response.write(part)) await Promise.race([once(response, "drain"), closed]);
    const ahead = rate > 0 ? ((at - from) / rate) * 1000 - (performance.now() - began) : 0;
    if (ahead > 0) await delay(ahead);
  }
  response.end();
}

const server = createServer((request, response) => {
  const url = request.url ?? "";
  if (url.includes("/resolve/")) void sendBytes(request, response);
  else if (url.includes("/tree/"))
    response.end(JSON.stringify([{ type: "file", path, oid: "0".repeat(40), size, lfs: { oid: sha256, size } }]));
  else response.end(JSON.stringify({ sha: commit }));
});

server.listen(0, "127.0.0.1", () => {
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The server has no port.");
  console.log(JSON.stringify({ endpoint: `http://127.0.0.1:${address.port}`, path: `resolve/${commit}/${path}` }));
});
process.stdin.resume().on("end", () => process.exit());
