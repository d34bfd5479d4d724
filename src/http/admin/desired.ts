// The document over HTTP: read, changed on a condition, tried out, waited for.
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { type WaitDeps, waitFor } from "../../commands/in-force.ts";
import { GatewayError } from "../../core/errors.ts";
import { isJsonObject } from "../../core/merge-patch.ts";
import { type DesiredState, toInput } from "../../desired/document/document.ts";
import type { DesiredStore, DocumentChange } from "../../desired/store.ts";
import { backoffKey, type Plan } from "../../plan/actions.ts";
import { isConverged, isSettled, type Pass } from "../../reconcile/loop.ts";
import { planBody, removalBody } from "../../status/report.ts";
import { callOf } from "../server/call.ts";

interface ChangeQuery {
  readonly dryRun?: string;
  readonly wait?: string;
  readonly timeout?: string;
  readonly cacheGone?: string;
}

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

export function desiredRoutes(app: FastifyInstance, deps: DesiredRoutesDeps): void {
  const { store, loop } = deps;
  const changing = { config: { query: ["dryRun", "wait", "timeout"] } } as const;

  app.get("/api/desired", (_request, reply) => {
    const state = store.current();
    void reply.header("etag", state.etag);
    return desiredBody(state);
  });
  app.put<{ Querystring: ChangeQuery }>("/api/desired", changing, (request, reply) =>
    change(request, reply, { kind: "put", input: request.body }),
  );
  app.patch<{ Querystring: ChangeQuery }>("/api/desired", changing, (request, reply) =>
    change(request, reply, { kind: "patch", patch: request.body }),
  );

  app.get("/api/plan", async (request, reply) => {
    await deps.readFile();
    const { generation } = store.current();
    const pass = await waitFor(deps, { generation, fresh: true, call: callOf(request, reply), test: () => true });
    const { stateDir } = deps;
    return { ...planBody(pass.plan, pass.desired.generation, pass.running), stateDir, source: deps.status().source };
  });
  app.post<{ Querystring: ChangeQuery }>(
    "/api/reconcile",
    { config: { query: ["wait", "timeout", "cacheGone"] } },
    async (request, reply) => {
      // A save a moment ago may not have been noticed yet.
      await deps.readFile();
      deps.retry(isYes(request.query.cacheGone));
      if (!isYes(request.query.wait)) return { ok: true, generation: store.current().generation };
      const pass = await settled(request, reply, store.current());
      return { ok: true, generation: pass.desired.generation, ...outcomeOf(pass) };
    },
  );

  function desiredBody(state: DesiredState): object {
    return {
      generation: state.generation,
      document: toInput(state.tree),
      differsFromFile: store.differencesFromFile(),
      removals: state.document.removals.map(removalBody),
    };
  }

  async function change(
    request: FastifyRequest<{ Querystring: ChangeQuery }>,
    reply: FastifyReply,
    wanted: DocumentChange,
  ): Promise<object> {
    if (!isJsonObject(request.body)) throw new GatewayError("invalid_request", "the body must be a JSON object");
    const ifMatch = request.headers["if-match"];
    if (isYes(request.query.dryRun)) {
      return { dryRun: true, ...planBody(deps.planFor(wanted, ifMatch), store.current().generation, []) };
    }
    const state = await store.change(wanted, `http:${request.method} /api/desired`, ifMatch);
    void reply.header("etag", state.etag);
    loop.wake("document");
    if (!isYes(request.query.wait)) return desiredBody(state);
    const pass = await settled(request, reply, state);
    return { ...desiredBody(state), ...outcomeOf(pass) };
  }

  /** Waits until everything is as the document says, or until what is left will not happen by itself. */
  function settled(
    request: FastifyRequest<{ Querystring: ChangeQuery }>,
    reply: FastifyReply,
    state: DesiredState,
  ): Promise<Pass> {
    return waitFor(deps, {
      generation: state.generation,
      timeoutMs: timeoutOf(request.query.timeout, deps.waitTimeoutMs),
      call: callOf(request, reply),
      fresh: true,
      test: (pass) => {
        const crowded = pass.plan.held.find((held) => held.why === "room");
        if (crowded) throw new GatewayError("disk_full", crowded.action.message);
        const stuck = pass.plan.held.find((held) => held.why === "stalled");
        const entry = stuck && loop.backoff().get(backoffKey(stuck.action));
        if (entry) throw new GatewayError(entry.code, entry.message);
        return isSettled(pass) || (pass.desired.document.suspend && pass.running.length === 0);
      },
    });
  }
}

/** `findings`: what the document asks for and cannot be had, by model. */
function outcomeOf(pass: Pass): object {
  return { converged: isConverged(pass), findings: Object.fromEntries(pass.plan.findings) };
}

function isYes(value: string | undefined): boolean {
  return value !== undefined && value !== "false" && value !== "0";
}

function timeoutOf(text: string | undefined, fallback: number): number {
  if (text === undefined) return fallback;
  const seconds = Number(text);
  if (!Number.isFinite(seconds) || seconds <= 0 || seconds > 86_400)
    throw new GatewayError("invalid_request", "timeout must be seconds from 0 to 86400");
  return seconds * 1000;
}
