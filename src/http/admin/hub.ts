// The hub for companion apps, with the gateway's own access to it: search, and a repository's model files.
import {
  hubFilesQuerySchema,
  hubFilesSchema,
  hubModelsSchema,
  hubReposSchema,
  hubSearchQuerySchema,
} from "../../../schemas/admin.ts";
import { ok } from "../../../schemas/route.ts";
import { type HubMemoryDeps, hubMemory } from "../../commands/hub-memory.ts";
import { clientLeftError, GatewayError } from "../../core/errors.ts";
import { createLine, type Line } from "../../core/line.ts";
import type { HubClient } from "../../hub/client.ts";
import { clientLeft } from "../server/call.ts";
import { routesOf } from "../server/route.ts";
import { hubErrors } from "../server/route-errors.ts";

export interface HubRoutesDeps extends Omit<HubMemoryDeps, "hub"> {
  readonly hub: HubMemoryDeps["hub"] & Pick<HubClient, "searchModels">;
  readonly hubQueue: Line;
  /** Of questions for memory, which take seconds. */
  readonly hubMemoryQueue: Line;
}

/** No license key is needed: without a limit a client without a key could use up what the hub allows our token. */
export function createHubQueue(width = 8, depth = 32): Line {
  return createLine({
    width,
    depth,
    refusal: (waiting) =>
      new GatewayError("hub_rate_limited", `${waiting} other hub requests are queued`, { retryAfterMs: 5_000 }),
    gone: () => clientLeftError(),
  });
}

async function inTurn<T>(queue: Line, left: AbortSignal, ask: () => Promise<T>): Promise<T> {
  const over = await queue.take(left);
  return ask().finally(over);
}

const { get } = routesOf<HubRoutesDeps>();

const config = { licenseKey: "none", errors: hubErrors } as const;

export const hubRoutes = [
  get("/api/hf/search", {
    config,
    operationId: "searchHub",
    summary: "Search the hub for GGUF repositories",
    querystring: hubSearchQuerySchema,
    response: ok("The repositories found.", hubReposSchema),
    handler: async (deps, { query: { q, limit, license } }, reply) => {
      const signal = clientLeft(reply);
      const options = { limit, license: license === true, signal };
      return [...(await inTurn(deps.hubQueue, signal, () => deps.hub.searchModels(q.trim(), options)))];
    },
  }),
  get("/api/hf/repo-files", {
    config,
    operationId: "repoFiles",
    summary: "List the GGUF files of a repository",
    description:
      "With `memory=true` its models, with what each would take of memory: the first bytes of each file are fetched, for 20 s at most.",
    querystring: hubFilesQuerySchema,
    response: ok("All of them, under the names they have there.", { anyOf: [hubFilesSchema, hubModelsSchema] }),
    handler: async (deps, { query: { repo, memory } }, reply) => {
      const left = clientLeft(reply);
      if (memory) return inTurn(deps.hubMemoryQueue, left, () => hubMemory(deps, repo, left));
      const files = await inTurn(deps.hubQueue, left, () => deps.hub.listTree(repo, "main", left));
      return files.filter(({ path }) => /\.gguf$/i.test(path)).map(({ path, size }) => ({ path, size }));
    },
  }),
];
