// The hub for companion apps, with the gateway's own access to it: search, and a repository's model files.
import type { FastifyInstance } from "fastify";
import {
  type HubFilesQuery,
  type HubSearchQuery,
  hubFilesQuerySchema,
  hubSearchQuerySchema,
} from "../../../schemas/own.ts";
import type { HubClient } from "../../hub/client.ts";
import { rememberAnswers } from "../remembered.ts";
import { queryCheck } from "../validate.ts";

/** A person who types asks the same again and again; what is new on the hub is seen soon enough. */
const rememberedMs = 30_000;
const mostRemembered = 200;

const searchQuery = queryCheck<HubSearchQuery>(hubSearchQuerySchema);
const filesQuery = queryCheck<HubFilesQuery>(hubFilesQuerySchema);

export function hubRoutes(
  app: FastifyInstance,
  hub: Pick<HubClient, "searchModels" | "listTree">,
  now: () => number,
): void {
  const remembered = rememberAnswers<readonly object[]>({ forMs: rememberedMs, atMost: mostRemembered, now });
  app.get("/api/hf/search", { config: { licenseKey: "none" } }, (request) => {
    const { q, limit } = searchQuery(request.query);
    const query = q.trim();
    return remembered(JSON.stringify(["search", query, limit]), async () => {
      const found = await hub.searchModels(query, limit);
      return found.map(({ id, downloads, likes }) => ({ id, downloads, likes }));
    });
  });
  app.get("/api/hf/repo-files", { config: { licenseKey: "none" } }, (request) => {
    const { repo } = filesQuery(request.query);
    return remembered(JSON.stringify(["files", repo]), async () => {
      const files = await hub.listTree(repo, "main");
      return files.filter(({ path }) => /\.gguf$/i.test(path)).map(({ path, size }) => ({ path, size }));
    });
  });
}
