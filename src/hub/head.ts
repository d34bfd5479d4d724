// The head of a GGUF file on the hub: its metadata and its list of tensors, without its weights.
import { headIn } from "../cache/gguf/head.ts";
import type { HubFile } from "../cache/layout/select.ts";
import { GatewayError } from "../core/errors.ts";
import type { HubClient, OpenedFile } from "./client.ts";
import { transferError } from "./errors.ts";

/** At a time: more would mostly be weights. */
const rangeBytes = 1024 * 1024;
/** The largest vocabularies with their merges take some 15 MiB. */
const mostBytes = 16 * rangeBytes;

/** The first bytes of the file, with its whole head. Errors: `hub_*`, `not_a_model`, `cancelled`. */
export async function fetchHead(
  hub: Pick<HubClient, "openFile">,
  { repo, commit, file }: { readonly repo: string; readonly commit: string; readonly file: HubFile },
  signal: AbortSignal,
): Promise<Buffer> {
  const what = `${file.path} of ${repo}`;
  let start: Buffer = Buffer.alloc(0);
  let place: OpenedFile["place"] | undefined;
  while (start.length < Math.min(mostBytes, file.size)) {
    const range = { from: start.length, to: Math.min(start.length + rangeBytes, file.size) };
    const opened = await hub.openFile(repo, commit, file.path, { ...range, place, signal });
    if (opened.from !== range.from) {
      opened.body.destroy();
      throw new GatewayError("hub_unreachable", `the hub has no ranges of ${what}`);
    }
    place = opened.place;
    const more = await firstBytes(opened.body, range.to - range.from).catch((error: unknown) => {
      throw transferError(error, what, signal);
    });
    start = Buffer.concat([start, more]);
    const state = headIn(start, file.size);
    if (state === "whole") return start;
    if (state === "damaged" || more.length === 0) throw new GatewayError("not_a_model", `${what} is not a GGUF model`);
  }
  throw new GatewayError("not_a_model", `the head of ${what} exceeds ${mostBytes / rangeBytes} MiB`);
}

/** A server without ranges would send the whole file. */
async function firstBytes(body: AsyncIterable<Buffer>, most: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    length += chunk.length;
    if (length >= most) break;
  }
  return Buffer.concat(chunks, Math.min(length, most));
}
