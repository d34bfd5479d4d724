// The hub for companion apps, with the gateway's own access to it: search, and a repository's model files.
import type { FastifyInstance } from "fastify";
import {
  type HubFilesQuery,
  type HubSearchQuery,
  hubFilesQuerySchema,
  hubSearchQuerySchema,
} from "../../../schemas/admin.ts";
import { GatewayError } from "../../core/errors.ts";
import type { HubClient } from "../../hub/client.ts";
import { rememberAnswers } from "../proxy/remembered.ts";
import { clientLeft } from "../server/client-left.ts";
import { createTurns } from "../server/turns.ts";
import { queryCheck } from "../server/validate.ts";

/** A person who types asks the same again and again; what is new on the hub is seen soon enough. */
const rememberedMs = 30_000;
const mostRemembered = 200;

/** Nobody needs a key for these: without a limit a stranger could use up what the hub allows our token. */
const atOnce = 8;
const waiting = 32;
const askAgainMs = 5_000;

const searchQuery = queryCheck<HubSearchQuery>(hubSearchQuerySchema);
const filesQuery = queryCheck<HubFilesQuery>(hubFilesQuerySchema);

export function hubRoutes(
  app: FastifyInstance,
  hub: Pick<HubClient, "searchModels" | "listTree">,
  now: () => number,
): void {
  const remembered = rememberAnswers<readonly object[]>({ forMs: rememberedMs, atMost: mostRemembered, now });
  const turns = createTurns({
    atOnce,
    waiting,
    refusal: () =>
      new GatewayError("hub_rate_limited", `${atOnce + waiting} other questions are before the hub already`, {
        retryAfterMs: askAgainMs,
      }),
  });
  app.get("/api/hf/search", { config: { licenseKey: "none" } }, (request, reply) => {
    const { q, limit } = searchQuery(request.query);
    const query = q.trim();
    const ask = async (signal: AbortSignal): Promise<readonly object[]> => {
      const found = await turns(() => hub.searchModels(query, limit, signal), signal);
      return found.map(({ id, downloads, likes }) => ({ id, downloads, likes }));
    };
    return remembered(JSON.stringify(["search", query, limit]), ask, clientLeft(reply));
  });
  app.get("/api/hf/repo-files", { config: { licenseKey: "none" } }, (request, reply) => {
    const { repo } = filesQuery(request.query);
    const ask = async (signal: AbortSignal): Promise<readonly object[]> => {
      const files = await turns(() => hub.listTree(repo, "main", signal), signal);
      return files.filter(({ path }) => /\.gguf$/i.test(path)).map(({ path, size }) => ({ path, size }));
    };
    return remembered(JSON.stringify(["files", repo]), ask, clientLeft(reply));
  });
}
