// The hub for companion apps, with the gateway's own access to it: search, and a repository's model files.
import { hubFilesQuerySchema, hubFilesSchema, hubReposSchema, hubSearchQuerySchema } from "../../../schemas/admin.ts";
import { json, ok } from "../../../schemas/route.ts";
import { GatewayError } from "../../core/errors.ts";
import type { HubClient } from "../../hub/client.ts";
import { rememberAnswers } from "../proxy/remembered.ts";
import { clientLeft } from "../server/client-left.ts";
import { type Route, route } from "../server/route.ts";
import { hubErrors } from "../server/route-errors.ts";
import { createTurns } from "../server/turns.ts";

/** A person who types asks the same again and again; what is new on the hub is seen soon enough. */
const rememberedMs = 30_000;
const mostRemembered = 200;

/** No license key is needed for these: without a limit a stranger could use up what the hub allows our token. */
const atOnce = 8;
const waiting = 32;
const askAgainMs = 5_000;

type Answer = Promise<readonly object[]>;

export interface HubQuestions {
  search(query: string, limit: number, left: AbortSignal): Answer;
  repoFiles(repo: string, left: AbortSignal): Answer;
}

export function createHubQuestions(hub: Pick<HubClient, "searchModels" | "listTree">, now: () => number): HubQuestions {
  const remembered = rememberAnswers<readonly object[]>({ forMs: rememberedMs, atMost: mostRemembered, now });
  const turns = createTurns({
    atOnce,
    waiting,
    refusal: () =>
      new GatewayError("hub_rate_limited", `${atOnce + waiting} other hub requests are queued`, {
        retryAfterMs: askAgainMs,
      }),
  });
  return {
    search: (text, limit, left) => {
      const query = text.trim();
      const ask = async (signal: AbortSignal): Answer => {
        const found = await turns(() => hub.searchModels(query, limit, signal), signal);
        return found.map(({ id, downloads, likes }) => ({ id, downloads, likes }));
      };
      return remembered(JSON.stringify(["search", query, limit]), ask, left);
    },
    repoFiles: (repo, left) => {
      const ask = async (signal: AbortSignal): Answer => {
        const files = await turns(() => hub.listTree(repo, "main", signal), signal);
        return files.filter(({ path }) => /\.gguf$/i.test(path)).map(({ path, size }) => ({ path, size }));
      };
      return remembered(JSON.stringify(["files", repo]), ask, left);
    },
  };
}

export interface HubRoutesDeps {
  readonly hubQuestions: HubQuestions;
}

const config = { licenseKey: "none", errors: hubErrors } as const;

export const hubRoutes: readonly Route<HubRoutesDeps>[] = [
  route({
    method: "GET",
    url: "/api/hf/search",
    config,
    schema: {
      operationId: "searchHub",
      summary: "Search the hub for GGUF repositories",
      querystring: hubSearchQuerySchema,
      response: ok("The repositories found.", json(hubReposSchema)),
    },
    handler: ({ hubQuestions }: HubRoutesDeps, { query: { q, limit } }, reply) =>
      hubQuestions.search(q, limit, clientLeft(reply)),
  }),
  route({
    method: "GET",
    url: "/api/hf/repo-files",
    config,
    schema: {
      operationId: "repoFiles",
      summary: "List the GGUF files of a repository",
      querystring: hubFilesQuerySchema,
      response: ok("All of them, under the names they have there.", json(hubFilesSchema)),
    },
    handler: ({ hubQuestions }: HubRoutesDeps, { query: { repo } }, reply) =>
      hubQuestions.repoFiles(repo, clientLeft(reply)),
  }),
];
