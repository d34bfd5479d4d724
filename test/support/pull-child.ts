// A process that pulls one model, to be killed at any moment. Argument: a PullOrder as JSON. Says `ready`, begins with the
// first line of its input, and ends saying `done` or why not.
import { once } from "node:events";
import { writeSync } from "node:fs";
import { type PullOptions, pullModel } from "../../src/cache/download/pull.ts";
import { parseModelId } from "../../src/core/ids.ts";
import { createHubClient } from "../../src/hub/client.ts";

export interface PullOrder {
  readonly endpoint: string;
  readonly token: string;
  readonly cacheDir: string;
  readonly gateway: string;
  readonly id: string;
  readonly tuning: NonNullable<PullOptions["tuning"]>;
}

const order = JSON.parse(process.argv[2] ?? "") as PullOrder;
const id = parseModelId(order.id);
if (!id) throw new Error(`${order.id} is no model id`);
const client = createHubClient({ endpoint: order.endpoint, token: order.token });
writeSync(1, "ready\n");
await once(process.stdin, "data");
try {
  await pullModel({
    client,
    cacheDir: order.cacheDir,
    gateway: order.gateway,
    id,
    isStillWanted: () => true,
    tuning: order.tuning,
    freeBytes: () => Promise.resolve(undefined),
    signal: new AbortController().signal,
    onProgress: () => undefined,
  });
  writeSync(1, "done\n");
} catch (error) {
  writeSync(1, `${String(error)}\n`);
}
process.exit();
