// The document over HTTP: read, changed on a condition, tried out, waited for.

import type { FastifyReply, FastifyRequest } from "fastify";
import {
  type ChangeQuery,
  changeQuerySchema,
  desiredSchema,
  documentBodySchema,
  mergePatchSchema,
  reconciledSchema,
  reconcileQuerySchema,
} from "../../../schemas/desired.ts";
import { planSchema } from "../../../schemas/plan.ts";
import { contents, json, ok } from "../../../schemas/route.ts";
import type { WaitDeps } from "../../commands/in-force.ts";
import { GatewayError } from "../../core/errors.ts";
import { isJsonObject } from "../../core/json.ts";
import { type DesiredState, toInput } from "../../desired/document/document.ts";
import type { DesiredStore, DocumentChange } from "../../desired/store.ts";
import { backoffKey, type Plan } from "../../plan/actions.ts";
import { isConverged, isSettled, type Pass } from "../../reconcile/loop.ts";
import { planBody, removalBody } from "../../status/report.ts";
import { callOf } from "../server/call.ts";
import { type Route, route } from "../server/route.ts";
import { changeErrors, pullErrors } from "../server/route-errors.ts";

export interface DesiredRoutesDeps extends WaitDeps {
  /** Tries again what was given up; with `cacheGone` a cache that is missing is believed to be gone for good. */
  readonly retry: (cacheGone: boolean) => void;
  readonly store: DesiredStore;
  readonly stateDir: string;
  /** Reads gateway.yaml; resolves when it is applied or found wrong. */
  readonly readFile: () => Promise<void>;
  /** What would be done for another document, with the world as it was last seen. */
  readonly planFor: (change: DocumentChange, ifMatch?: string) => Plan;
}

const changing = {
  querystring: changeQuerySchema,
  headers: { "If-Match": "The ETag of the document that the change is meant for; without it, any." },
  response: ok("The document after the change; with `dryRun` its plan.", json({ anyOf: [desiredSchema, planSchema] })),
} as const;
const changeConfig = { errors: [...pullErrors, "file_only", "precondition_failed", "source_missing"] } as const;

export const desiredRoutes: readonly Route<DesiredRoutesDeps>[] = [
  route({
    method: "GET",
    url: "/api/desired",
    schema: {
      operationId: "desired",
      summary: "Get the document",
      description: "The ETag goes into `If-Match` of a change.",
      response: ok("The document.", json(desiredSchema)),
    },
    handler: ({ store }: DesiredRoutesDeps, _request, reply) => {
      const state = store.current();
      void reply.header("etag", state.etag);
      return desiredBody(store, state);
    },
  }),
  route({
    method: "PUT",
    url: "/api/desired",
    config: changeConfig,
    schema: {
      operationId: "putDesired",
      summary: "Replace the document",
      ...changing,
      // Checked by the store, which names what is wrong in the document's own terms.
      body: json(documentBodySchema),
    },
    handler: (deps: DesiredRoutesDeps, request, reply) =>
      change(deps, request, reply, { kind: "put", input: request.body }),
  }),
  route({
    method: "PATCH",
    url: "/api/desired",
    config: changeConfig,
    schema: {
      operationId: "patchDesired",
      summary: "Change a part of the document",
      ...changing,
      body: contents(json(mergePatchSchema), {
        content: { "application/merge-patch+json": { schema: mergePatchSchema } },
      }),
    },
    handler: (deps: DesiredRoutesDeps, request, reply) =>
      change(deps, request, reply, { kind: "patch", patch: request.body }),
  }),
  route({
    method: "GET",
    url: "/api/plan",
    config: { errors: ["router_unavailable"] },
    schema: {
      operationId: "plan",
      summary: "Get the current plan",
      response: ok("The plan.", json(planSchema)),
    },
    handler: async (deps: DesiredRoutesDeps, request, reply) => {
      await deps.readFile();
      const { generation } = deps.store.current();
      const { signal } = callOf(request, reply);
      const wait = { generation, fresh: true, timeoutMs: deps.waitTimeoutMs, signal };
      const pass = await deps.loop.waitFor({ ...wait, test: () => true });
      const { stateDir } = deps;
      return { ...planBody(pass.plan, pass.desired.generation, pass.running), stateDir, source: deps.status().source };
    },
  }),
  route({
    method: "POST",
    url: "/api/reconcile",
    config: { errors: [...changeErrors, ...pullErrors, "source_missing"] },
    schema: {
      operationId: "reconcile",
      summary: "Reconcile now and reset backoffs",
      querystring: reconcileQuerySchema,
      response: ok("Reconciling has begun, or with `wait` ended.", json(reconciledSchema)),
    },
    handler: async (deps: DesiredRoutesDeps, request, reply) => {
      const { cacheGone, wait } = request.query;
      // A save a moment ago may not have been noticed yet.
      await deps.readFile();
      deps.retry(isYes(cacheGone));
      const state = deps.store.current();
      if (!isYes(wait)) return { ok: true, generation: state.generation };
      const pass = await settled(deps, request, reply, state);
      const { source } = deps.status();
      // A file that cannot be read is not in force, however well the document before it is.
      const converged = isConverged(pass) && source.valid;
      return { ok: true, generation: pass.desired.generation, ...outcomeOf(pass), converged, source };
    },
  }),
];

type ChangeRequest = FastifyRequest<{ Querystring: ChangeQuery }>;

function desiredBody(store: DesiredStore, state: DesiredState): object {
  return {
    generation: state.generation,
    document: toInput(state.tree),
    differsFromFile: store.differencesFromFile(),
    removals: state.document.removals.map(removalBody),
  };
}

async function change(
  deps: DesiredRoutesDeps,
  request: ChangeRequest,
  reply: FastifyReply,
  wanted: DocumentChange,
): Promise<object> {
  const { store } = deps;
  if (!isJsonObject(request.body)) throw new GatewayError("invalid_request", "the body must be a JSON object");
  const ifMatch = request.headers["if-match"];
  if (isYes(request.query.dryRun)) {
    return { dryRun: true, ...planBody(deps.planFor(wanted, ifMatch), store.current().generation, []) };
  }
  const state = await store.change(wanted, `http:${request.method} /api/desired`, ifMatch);
  void reply.header("etag", state.etag);
  if (!isYes(request.query.wait)) return desiredBody(store, state);
  const pass = await settled(deps, request, reply, state);
  return { ...desiredBody(store, state), ...outcomeOf(pass) };
}

/** Waits until everything is as the document states, or until what is left will not happen by itself. */
function settled(
  deps: DesiredRoutesDeps,
  request: FastifyRequest<{ Querystring: Pick<ChangeQuery, "timeout"> }>,
  reply: FastifyReply,
  state: DesiredState,
): Promise<Pass> {
  const { timeout } = request.query;
  return deps.loop.waitFor({
    generation: state.generation,
    timeoutMs: timeout === undefined ? deps.waitTimeoutMs : timeout * 1000,
    signal: callOf(request, reply).signal,
    fresh: true,
    test: (pass) => {
      const crowded = pass.plan.held.find((held) => held.why === "room");
      if (crowded) throw new GatewayError("disk_full", crowded.action.message);
      const stuck = pass.plan.held.find((held) => held.why === "stalled");
      const entry = stuck && deps.loop.backoff().get(backoffKey(stuck.action));
      if (entry) throw new GatewayError(entry.code, entry.message);
      return isSettled(pass) || (pass.desired.document.suspend && pass.running.length === 0);
    },
  });
}

/** `findings`: what the document asks for and cannot be had, by model. */
function outcomeOf(pass: Pass): object {
  return { converged: isConverged(pass), findings: Object.fromEntries(pass.plan.findings) };
}

function isYes(value: string | undefined): boolean {
  return value !== undefined && value !== "false" && value !== "0";
}
