// The hub's own routes for files of this gateway's cache, so that other machines fetch them from here: `/hub` is a hub's address.
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { ok } from "../../../schemas/route.ts";
import { clientLeftError, GatewayError } from "../../core/errors.ts";
import { createLine, type Line } from "../../core/line.ts";
import type { DesiredStore } from "../../desired/store.ts";
import type { Executor } from "../../execute/executor.ts";
import { stillPulling } from "../../hub/errors.ts";
import { callerHeader } from "../../hub/http.ts";
import type { Loop } from "../../reconcile/loop.ts";
import { clientLeft } from "../server/call.ts";
import { installFamily } from "../server/family.ts";
import { installRoutes, routesOf } from "../server/route.ts";
import { sendFile } from "./send-file.ts";
import { isComing, type ServedFile, type ServedRevision, servedAt } from "./served.ts";
import { modelInfo, treeEntry } from "./shapes.ts";

export interface HubServingDeps {
  readonly loop: Pick<Loop, "last">;
  readonly executor: Pick<Executor, "running">;
  readonly store: Pick<DesiredStore, "current">;
  /** Reads gateway.yaml; resolves when it is applied or found wrong. */
  readonly readFile: () => Promise<void>;
  readonly gatewayId: string;
  readonly cutOff: AbortSignal;
  readonly fileQueue: Line;
}

/** Files that are sent at once: eight machines with eight connections each. */
const mostFiles = 64;
/** When to ask again for what is being pulled here. */
const pullingMs = 5_000;

const { get } = routesOf<HubServingDeps>();

const owner = { type: "string", description: "Of the repository." };
const name = { type: "string", description: "Of the repository." };
const revision = { type: "string", description: "Branch, tag or commit." };
const config = { errors: ["not_found", "mirror_busy", "cache_unwritable"] } as const;
const object = { type: "object" } as const;

export const hubServingRoutes = [
  get("/hub/api/models/:owner/:name", {
    config,
    operationId: "hubModel",
    summary: "Get a repository, as the hub has it",
    params: { owner, name },
    response: ok("With the commit of its main branch.", object),
    handler: async (deps, request, reply) => modelInfo(await revisionOf(deps, request, reply)),
  }),
  get("/hub/api/models/:owner/:name/revision/:revision", {
    config,
    operationId: "hubRevision",
    summary: "Get a revision of a repository",
    params: { owner, name, revision },
    response: ok("With its commit and the files that are here.", object),
    handler: async (deps, request, reply) => modelInfo(await revisionOf(deps, request, reply)),
  }),
  get("/hub/api/models/:owner/:name/refs", {
    config,
    operationId: "hubRefs",
    summary: "List the branches of a repository",
    params: { owner, name },
    response: ok("The main branch.", object),
    handler: async (deps, request, reply) => {
      const { commit } = await revisionOf(deps, request, reply);
      return { branches: [{ name: "main", ref: "refs/heads/main", targetCommit: commit }], converts: [], tags: [] };
    },
  }),
  get("/hub/api/models/:owner/:name/tree/:revision", {
    config,
    operationId: "hubTree",
    summary: "List the files of a repository",
    description: "Verified files only. With `recursive=true` those in folders too.",
    params: { owner, name, revision },
    response: ok("Each file with its size and SHA-256.", { type: "array", items: object }),
    handler: async (deps, request, reply) => {
      const { recursive } = request.query as { readonly recursive?: string };
      const { files } = await revisionOf(deps, request, reply);
      return files.filter(({ path }) => recursive === "true" || !path.includes("/")).map(treeEntry);
    },
  }),
  get("/hub/:owner/:name/resolve/:revision/*", {
    // A stop cuts it: its client resumes, or asks the hub.
    config: { errors: [...config.errors, "busy"], endless: true },
    operationId: "hubFile",
    summary: "Download a file of a repository",
    description: "A verified file of the cache. HEAD and ranges as on the hub.",
    params: { owner, name, revision, path: { type: "string", description: "Of the file in the repository." } },
    response: ok("The file's bytes.", {
      content: { "application/octet-stream": { schema: { type: "string", format: "binary" } } },
    }),
    handler: download,
  }),
];

export function installHubServing(app: FastifyInstance, deps: Omit<HubServingDeps, "fileQueue">): void {
  installFamily(app, "gateway");
  const fileQueue = createLine({
    width: mostFiles,
    depth: 0,
    refusal: () => new GatewayError("busy", `${mostFiles} files are being sent`, { retryAfterMs: pullingMs }),
    gone: () => clientLeftError(),
  });
  installRoutes(app, "own", hubServingRoutes, { ...deps, fileQueue });
}

async function download(deps: HubServingDeps, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const { commit, file } = await fileOf(deps, request, reply);
  const over = await deps.fileQueue.take(clientLeft(reply));
  try {
    if (!(await sendFile(file, commit, request, reply, deps.cutOff))) throw await absence(deps, request, reply);
  } finally {
    over();
  }
  return reply;
}

async function fileOf(
  deps: HubServingDeps,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<{ readonly commit: string; readonly file: ServedFile }> {
  const { commit, files } = await revisionOf(deps, request, reply);
  const { "*": path = "" } = request.params as Readonly<Record<string, string>>;
  // Only what the scan has found: a path that leaves its folder is in no list.
  const file = files.find((each) => each.path === path);
  if (!file) throw await absence(deps, request, reply);
  return { commit, file };
}

async function revisionOf(deps: HubServingDeps, request: FastifyRequest, reply: FastifyReply): Promise<ServedRevision> {
  const { revision: asked = "main" } = request.params as Readonly<Record<string, string>>;
  const { cache, inventory } = deps.loop.last()?.observed ?? {};
  if (cache?.state === "unknown") throw new GatewayError("cache_unwritable", cache.why);
  const found = cache && inventory ? servedAt(cache.value, inventory, repoOf(request), asked) : null;
  if (!found) throw await absence(deps, request, reply);
  return found;
}

/** Clients of the hub read the header. What is being pulled here is worth waiting for. */
async function absence(deps: HubServingDeps, request: FastifyRequest, reply: FastifyReply): Promise<GatewayError> {
  const repo = repoOf(request);
  // Replicas that all get another file at once: this one may not have read it yet.
  await deps.readFile();
  // This gateway's own pull would wait for itself.
  const isOwn = request.headers[callerHeader] === deps.gatewayId;
  if (!isOwn && isComing(repo, deps.executor.running(), deps.loop.last(), deps.store.current())) {
    void reply.header("x-error-code", stillPulling);
    return new GatewayError("mirror_busy", `${repo} is being pulled here`, { retryAfterMs: pullingMs });
  }
  // Without a name from the request: not every character may stand in a header.
  void reply.headers({ "x-error-code": "EntryNotFound", "x-error-message": "Entry not found" });
  return new GatewayError("not_found", `this gateway has no verified file of that name and revision of ${repo}`);
}

function repoOf({ params }: FastifyRequest): string {
  const { owner: of = "", name: called = "" } = params as Readonly<Record<string, string>>;
  return `${of}/${called}`;
}
