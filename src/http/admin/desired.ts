// The document over HTTP: read, changed on a condition, tried out, waited for.
import { createHash } from "node:crypto";
import type { FastifyReply, FastifyRequest } from "fastify";
import {
  type ChangeQuery,
  changeQuerySchema,
  desiredSchema,
  documentBodySchema,
  mergePatchSchema,
  type PutQuery,
  planQuerySchema,
  putQuerySchema,
  reconciledSchema,
  reconcileQuerySchema,
} from "../../../schemas/desired.ts";
import { planSchema } from "../../../schemas/plan.ts";
import { contents, json, ok, textSchema } from "../../../schemas/route.ts";
import type { WaitDeps } from "../../commands/in-force.ts";
import { GatewayError } from "../../core/errors.ts";
import { isJsonObject } from "../../core/json.ts";
import type { PresetAllow } from "../../core/preset-keys.ts";
import { type DesiredState, toInput } from "../../desired/document/document.ts";
import { readText } from "../../desired/parse-apart.ts";
import { renderDocument } from "../../desired/render.ts";
import type { DesiredStore, DocumentChange } from "../../desired/store.ts";
import { backoffKey } from "../../plan/actions.ts";
import { isConverged, isSettled, type Pass } from "../../reconcile/loop.ts";
import { planBody, type TalliedPlan } from "../../status/plan-body.ts";
import { removalBody } from "../../status/report.ts";
import { callOf } from "../server/call.ts";
import { routesOf } from "../server/route.ts";
import { pullErrors } from "../server/route-errors.ts";

export interface DesiredRoutesDeps extends WaitDeps {
  /** Tries again what was given up; with `cacheGone` a cache that is missing is believed to be gone for good. */
  readonly retry: (cacheGone: boolean) => void;
  readonly store: DesiredStore;
  readonly stateDir: string;
  readonly presetAllow: PresetAllow;
  /** Reads gateway.yaml; resolves when it is applied or found wrong. */
  readonly readFile: () => Promise<void>;
  /** What would be done for another document, with the world as it was last seen. */
  readonly planFor: (
    change: DocumentChange,
    ifMatch: string | undefined,
    question: PlanQuestion,
  ) => Promise<TalliedPlan>;
  readonly planOf: (pass: Pass, question: PlanQuestion) => Promise<TalliedPlan>;
}

interface PlanQuestion {
  /** The hub is not asked. */
  readonly offline: boolean;
  readonly signal: AbortSignal;
}

/** Of a route that changes the document. */
export const changeOptions = {
  config: { errors: [...pullErrors, "file_only", "precondition_failed", "source_missing"] },
  querystring: changeQuerySchema,
  headers: { "If-Match": "The ETag of the document that the change is meant for; without it, any." },
  response: ok("The document after the change; with `dryRun` its plan.", { anyOf: [desiredSchema, planSchema] }),
} as const;

const yamlText = { content: { "application/yaml": { schema: textSchema } } } as const;

/** JSON where both are. */
function isYamlAccepted(accept = ""): boolean {
  return accept.includes("yaml") && !accept.includes("json");
}

const { get, patch, post, put } = routesOf<DesiredRoutesDeps>();

export const desiredRoutes = [
  get("/api/desired", {
    operationId: "desired",
    summary: "Get the document",
    description: "The ETag goes into `If-Match` of a change, and into `If-None-Match` of the next request.",
    headers: {
      Accept: "`application/yaml`: the document alone, as a gateway.yaml.",
      "If-None-Match": "An ETag: 304 without a body while nothing of it has changed.",
    },
    response: { ...ok("The document.", desiredSchema, yamlText), 304: { description: "It is as the ETag has it." } },
    handler: ({ store }, { headers }, reply) => {
      const body = showDesired(store, store.current(), reply);
      // A browser's cache would give the one form for the other: they share the ETag, and it asks by that whatever `Vary` says.
      void reply.header("cache-control", "no-store");
      const known = headers["if-none-match"]?.split(",").map((part) => part.trim().replace(/^W\//, ""));
      if (known?.some((part) => part === "*" || part === reply.getHeader("etag"))) return reply.code(304).send();
      if (!isYamlAccepted(headers.accept)) return body;
      return reply.type("application/yaml").send(renderDocument(toInput(store.current().tree)));
    },
  }),
  put("/api/desired", {
    operationId: "putDesired",
    summary: "Replace the document",
    ...changeOptions,
    description:
      "YAML says the same as JSON: the whole document. With `apply` it is a gateway.yaml, of which only what its author changed is merged in.",
    querystring: putQuerySchema,
    config: { ...changeOptions.config, yaml: true },
    // Checked by the store, which names what is wrong in the document's own terms.
    body: contents(json(documentBodySchema), yamlText),
    handler: async (deps, request, reply) =>
      makeChange(deps, request, reply, { change: await putChange(request.body, request.query, deps.presetAllow) }),
  }),
  patch("/api/desired", {
    operationId: "patchDesired",
    summary: "Change a part of the document",
    ...changeOptions,
    body: contents(json(mergePatchSchema), {
      content: { "application/merge-patch+json": { schema: mergePatchSchema } },
    }),
    handler: (deps, request, reply) =>
      makeChange(deps, request, reply, { change: { kind: "patch", patch: objectIn(request.body) } }),
  }),
  get("/api/plan", {
    config: { errors: ["router_unavailable"] },
    operationId: "plan",
    summary: "Get the current plan",
    querystring: planQuerySchema,
    response: ok("The plan.", planSchema),
    handler: async (deps, request, reply) => {
      await deps.readFile();
      const { generation } = deps.store.current();
      const { signal } = callOf(request, reply);
      const wait = { generation, fresh: true, timeoutMs: deps.waitTimeoutMs, signal };
      const pass = await deps.loop.waitFor({ ...wait, test: () => true });
      const whole = await deps.planOf(pass, { offline: request.query.offline ?? false, signal });
      const { generation: planned } = pass.desired;
      const { stateDir } = deps;
      const body = planBody({ ...whole, generation: planned, running: pass.running });
      return { ...body, stateDir, source: deps.status().source };
    },
  }),
  post("/api/reconcile", {
    config: { errors: [...pullErrors, "source_missing"] },
    operationId: "reconcile",
    summary: "Reconcile now and reset backoffs",
    querystring: reconcileQuerySchema,
    response: ok("Reconciling has begun, or with `wait` ended.", reconciledSchema),
    handler: async (deps, request, reply) => {
      const { cacheGone, wait } = request.query;
      // A save a moment ago may not have been noticed yet.
      await deps.readFile();
      deps.retry(cacheGone ?? false);
      const state = deps.store.current();
      if (!wait) return { ok: true, generation: state.generation };
      const pass = await settled(deps, request.query.timeout, callOf(request, reply).signal, state);
      const { source } = deps.status();
      // A file that cannot be read is not in force, however well the document before it is.
      const converged = isConverged(pass) && source.valid;
      return { ok: true, generation: pass.desired.generation, ...outcomeOf(pass), converged, source };
    },
  }),
];

type ChangeRequest = FastifyRequest<{ Querystring: ChangeQuery }>;

/** Sets the ETag: the document's, with a part for what changes beside it. */
function showDesired(store: DesiredStore, state: DesiredState, reply: FastifyReply): object {
  const beside = {
    applied: state.applied,
    differsFromFile: store.differencesFromFile(),
    removals: state.document.removals.map(removalBody),
  };
  const hash = createHash("sha256").update(JSON.stringify(beside)).digest("hex").slice(0, 8);
  void reply.header("etag", state.etag.replace(/"$/, `.${hash}"`));
  return { generation: state.generation, document: toInput(state.tree), ...beside };
}

/** Errors: `invalid_request`, `invalid_document` with line and column. */
async function putChange(body: unknown, query: PutQuery, presetAllow: PresetAllow): Promise<DocumentChange> {
  const { apply = false, revision } = query;
  if (revision !== undefined && !apply)
    throw new GatewayError("invalid_request", "revision is of an applied file: add apply=true");
  if (!Buffer.isBuffer(body)) {
    if (apply)
      throw new GatewayError("invalid_request", "apply takes a text: send it with Content-Type: application/yaml");
    return { kind: "put", input: objectIn(body) };
  }
  const file = await readText(body, presetAllow);
  return apply ? { kind: "apply", file: { ...file, revision } } : { kind: "put", input: toInput(file.tree) };
}

function objectIn(body: unknown): object {
  if (!isJsonObject(body)) throw new GatewayError("invalid_request", "the body must be a JSON object");
  return body;
}

/** Changes the document, or tries that out; waits if that is asked for. */
export async function makeChange(
  deps: DesiredRoutesDeps,
  request: ChangeRequest,
  reply: FastifyReply,
  { change, by }: { readonly change: DocumentChange; readonly by?: string },
): Promise<object> {
  const { store } = deps;
  const ifMatch = request.headers["if-match"];
  const call = callOf(request, reply);
  const { dryRun = false, offline = false } = request.query;
  if (dryRun) {
    const { generation } = store.current();
    const whole = await deps.planFor(change, ifMatch, { offline, signal: call.signal });
    return { dryRun: true, ...planBody({ ...whole, generation, running: [] }) };
  }
  const state = await store.change(change, { ...call, by: by ?? call.by }, ifMatch);
  const shown = showDesired(store, state, reply);
  if (!request.query.wait) return shown;
  const pass = await settled(deps, request.query.timeout, call.signal, state);
  return { ...shown, ...outcomeOf(pass) };
}

/** Waits until everything is as the document states, or until what is left will not happen by itself. */
function settled(
  deps: DesiredRoutesDeps,
  timeout: number | undefined,
  signal: AbortSignal,
  state: DesiredState,
): Promise<Pass> {
  return deps.loop.waitFor({
    generation: state.generation,
    timeoutMs: timeout === undefined ? deps.waitTimeoutMs : timeout * 1000,
    signal,
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
