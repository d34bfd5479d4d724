// Ollama's pull: a record a line for as long as it goes on. What a pull is, the edits know.

import type { FastifyReply } from "fastify";
import { nativePullRecordSchema, nativePullSchema } from "../../../schemas/ollama.ts";
import { json, lines, ok } from "../../../schemas/route.ts";
import { steadyNow } from "../../core/steady.ts";
import { callOf } from "../server/call.ts";
import { frameOf, renderError } from "../server/errors.ts";
import { RawReply } from "../server/raw-reply.ts";
import { type Route, route } from "../server/route.ts";
import { pullErrors } from "../server/route-errors.ts";
import { streamHeaders } from "./answers.ts";
import type { NativeRoutesDeps } from "./deps.ts";
import { createPullRecords, type PullRecord } from "./pull-records.ts";
import { booleanOf, modelNameOf, objectOf } from "./wire/fields.ts";

/** Clients and proxies drop a stream without a byte for minutes, such as that of a pull while the hub is unreachable. */
const defaultRepeatMs = 10_000;

/** A failure within this time still gets a status of its own; clients abort a request without a byte for long. */
const firstRecordMs = 1_000;

export const pullRoute: Route<NativeRoutesDeps> = route({
  method: "POST",
  url: "/pull",
  // Another client may take the model out of the document meanwhile.
  config: { anyMediaType: true, errors: [...pullErrors, "cancelled"] },
  schema: {
    operationId: "nativePull",
    summary: "Pull a model",
    description: "Ends once the router lists the model. A client that leaves cancels the pull that it asked for.",
    body: json(nativePullSchema),
    response: ok(
      "A record per line, or with `stream: false` the last.",
      lines(nativePullRecordSchema),
      json(nativePullRecordSchema),
    ),
  },
  handler: async (deps: NativeRoutesDeps, request, reply) => {
    const body = objectOf(request.body);
    booleanOf(body["insecure"] ?? false, "insecure");
    const name = modelNameOf(body);
    const stream = booleanOf(body["stream"] ?? true, "stream");
    const call = { ...callOf(request, reply), keep: booleanOf(body["keep"] ?? false, "keep") };
    if (!stream) {
      await deps.edits.pull(name, call, () => undefined);
      return { status: "success" };
    }
    await streamed(reply, deps.pullRepeatMs ?? defaultRepeatMs, (tell) => deps.edits.pull(name, call, tell));
    return reply;
  },
});

type Tell = Parameters<NativeRoutesDeps["edits"]["pull"]>[2];

async function streamed(reply: FastifyReply, repeatMs: number, pull: (tell: Tell) => Promise<unknown>): Promise<void> {
  const records = createPullRecords(steadyNow);
  let latest: PullRecord | undefined;
  const held: PullRecord[] = [];
  let raw: RawReply | null = null;
  const write = (all: readonly PullRecord[]): void => {
    // How far it is can be left out where the client does not read.
    const list = raw?.isBlocked() ? all.filter(({ completed, total }) => completed === total) : all;
    if (list.length === 0) return;
    if (!raw) {
      reply.hijack();
      raw = new RawReply(reply.raw);
      raw.head(200, streamHeaders);
    }
    latest = list.at(-1);
    repeat.refresh();
    raw.write(list.map((record) => `${JSON.stringify(record)}\n`).join(""));
  };
  const repeat = setInterval(() => {
    if (latest && !raw?.isBlocked()) write([latest]);
  }, repeatMs);
  const tell = (list: readonly PullRecord[]): void => {
    held.push(...list);
    // The first record waits until bytes come: so a repository that does not exist can still be a 404.
    if (raw || held.some(({ digest }) => digest !== undefined)) write(held.splice(0));
  };
  const patience = setTimeout(() => write([...held.splice(0), ...records.begin()]), firstRecordMs);
  let last = "";
  try {
    await pull((news) => tell(records.push(news)));
    write([...held.splice(0), ...records.end()]);
  } catch (error) {
    // Before the first record it is an answer of its own.
    if (!raw) throw error;
    last = frameOf("native", renderError("native", error));
  } finally {
    clearTimeout(patience);
    clearInterval(repeat);
  }
  finish(raw, last);
}

/** Apart, as the compiler does not see that a callback has set it. */
function finish(raw: RawReply | null, last: string): void {
  if (last !== "") raw?.write(last);
  raw?.end();
}
