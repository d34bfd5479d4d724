// Ollama's pull: a record a line for as long as it goes on. What a pull is, the edits know.
import { PassThrough } from "node:stream";
import type { FastifyReply } from "fastify";
import { type NativePullRecord, nativePullRecordSchema, nativePullSchema } from "../../../schemas/ollama.ts";
import { json, lines, ok } from "../../../schemas/route.ts";
import type { PullNews } from "../../commands/pull.ts";
import { steadyNow } from "../../core/steady.ts";
import { callOf } from "../server/call.ts";
import { frameOf, renderError } from "../server/errors.ts";
import { pullErrors } from "../server/route-errors.ts";
import { recordHeaders } from "./answers.ts";
import { post } from "./deps.ts";
import { modelNameOf } from "./library.ts";
import { createPullRecords } from "./pull-records.ts";

/** Clients and proxies drop a stream without a byte for minutes, such as that of a pull while the hub is unreachable. */
const defaultRepeatMs = 10_000;

/** A failure within this time still gets a status of its own; clients abort a request without a byte for long. */
const firstRecordMs = 1_000;

export const pullRoute = post("/pull", {
  operationId: "nativePull",
  summary: "Pull a model",
  description: "Ends once the router lists the model. A client that leaves cancels the pull that it asked for.",
  body: nativePullSchema,
  response: ok(
    "A record per line, or with `stream: false` the last.",
    lines(nativePullRecordSchema),
    json(nativePullRecordSchema),
  ),
  // Another client may take the model out of the document meanwhile.
  config: { anyMediaType: true, errors: [...pullErrors, "cancelled"] },
  handler: async ({ edits, pullRepeatMs = defaultRepeatMs }, request, reply) => {
    const { stream, keep } = request.body;
    const name = modelNameOf(request.body);
    const call = { ...callOf(request, reply), keep: keep ?? false };
    if (stream ?? true) return streamed(reply, pullRepeatMs, (tell) => edits.pull(name, call, tell));
    await edits.pull(name, call, () => undefined);
    return { status: "success" };
  },
});

async function streamed(
  reply: FastifyReply,
  repeatMs: number,
  pull: (tell: (news: PullNews) => void) => Promise<unknown>,
): Promise<FastifyReply> {
  const records = createPullRecords(steadyNow);
  const out = new PassThrough();
  let latest: NativePullRecord | undefined;
  let isBegun = false;
  const write = (list: readonly NativePullRecord[]): void => {
    if (list.length === 0) return;
    latest = list.at(-1);
    repeat.refresh();
    out.write(list.map((record) => `${JSON.stringify(record)}\n`).join(""));
  };
  const begin = (list: readonly NativePullRecord[]): void => {
    write(list);
    if (!isBegun) void reply.headers(recordHeaders).send(out);
    isBegun = true;
  };
  const repeat = setInterval(() => latest && write([latest]), repeatMs);
  const patience = setTimeout(() => begin(records.begin()), firstRecordMs);
  try {
    await pull((news) => write(records.push(news)));
    begin(records.end());
  } catch (error) {
    if (!isBegun) throw error;
    out.write(frameOf("native", renderError("native", error)));
  } finally {
    clearTimeout(patience);
    clearInterval(repeat);
    out.end();
  }
  return reply;
}
