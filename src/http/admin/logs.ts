// The engines' output by model, as text: what is kept, and what comes.
import type { FastifyReply, FastifyRequest } from "fastify";
import { ok, textSchema } from "../../../schemas/route.ts";
import { logsQuerySchema } from "../../../schemas/status.ts";
import type { Catalog } from "../../catalog/catalog.ts";
import { GatewayError } from "../../core/errors.ts";
import { type EngineLogs, type LogLine, logText } from "../../engines/process/engine-logs.ts";
import { streamHeaders } from "../server/raw-reply.ts";
import { routesOf } from "../server/route.ts";

/** Lines */
const usualTail = 1_000;
/** At once. */
const mostFollowers = 32;
/** Bytes. A client this far behind gets no more. */
const mostBuffered = 1 << 20;

export interface LogRoutesDeps {
  readonly logs: Pick<EngineLogs, "read" | "names" | "follow" | "followers">;
  readonly catalog: Pick<Catalog, "resolve">;
  readonly cutOff: AbortSignal;
}

export const logsRoute = routesOf<LogRoutesDeps>().get("/api/logs", {
  operationId: "logs",
  summary: "Get the engines' output",
  description:
    "A line each, with its time; without `model` the name of the model stands between them. Of each model the last 1 to 2 MiB are kept, over restarts too.",
  querystring: logsQuerySchema,
  response: ok("The last lines.", { content: { "text/plain": { schema: textSchema } } }),
  exposeHeadRoute: false,
  config: { endless: true, errors: ["model_not_found", "busy"] },
  handler: async (deps, request, reply) => {
    const { model, tail = usualTail, follow = false } = request.query;
    const log = model === undefined ? null : await logOf(model, deps);
    if (follow) return stream(deps, log, tail, request, reply);
    return reply.type(mediaType).send(logText(await deps.logs.read(log, tail), tail, log === null));
  },
});

const mediaType = "text/plain; charset=utf-8";

/** A model that was loaded once may be gone from the cache, and its log is there. Errors: `model_not_found`. */
async function logOf(name: string, { logs, catalog }: LogRoutesDeps): Promise<string> {
  return (await logs.names()).includes(name) ? name : catalog.resolve(name).upstreamId;
}

async function stream(
  { logs, cutOff }: LogRoutesDeps,
  log: string | null,
  tail: number,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  if (logs.followers() >= mostFollowers)
    throw new GatewayError("busy", `${logs.followers()} clients follow the logs, and no more may`, {
      retryAfterMs: 10_000,
    });
  const response = reply.raw;
  const early: LogLine[] = [];
  let take = (lines: readonly LogLine[]): void => void early.push(...lines);
  // In the same turn: no line is missing between what is kept and what comes, and none comes twice.
  const reading = logs.read(log, tail);
  const unfollow = logs.follow((lines) => take(log === null ? lines : lines.filter((line) => line.log === log)));
  response.on("close", unfollow);
  const kept = await reading.catch((error: unknown) => {
    unfollow();
    throw error;
  });
  reply.hijack();
  response.writeHead(200, streamHeaders(mediaType));
  response.flushHeaders();
  response.write(logText(kept, tail, log === null) + logText(early, Infinity, log === null));
  const limit = mostBuffered + response.writableLength;
  const end = (): void => void response.end();
  take = (lines) => {
    if (response.writableLength > limit || !request.isStillAllowed()) end();
    else response.write(logText(lines, Infinity, log === null));
  };
  cutOff.addEventListener("abort", end);
  response.on("close", () => cutOff.removeEventListener("abort", end));
}
