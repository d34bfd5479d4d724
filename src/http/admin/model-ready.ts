// Readiness of one model, for those that need this one: a probe, a deployment that waits for it.
import type { FastifyReply, FastifyRequest } from "fastify";
import { modelReadySchema } from "../../../schemas/desired.ts";
import { json, ok } from "../../../schemas/route.ts";
import type { Catalog } from "../../catalog/catalog.ts";
import { finding } from "../../status/finding.ts";
import { modelNamed, type StatusReport } from "../../status/report.ts";
import { routesOf } from "../server/route.ts";
import { firstLook, type StatusRoutesDeps } from "./status.ts";

export interface ModelReadyDeps extends StatusRoutesDeps {
  readonly catalog: Pick<Catalog, "find" | "resolve" | "view">;
}

const { get } = routesOf<ModelReadyDeps>();

/** Any name of the model, its slash as it is or escaped: a wildcard could not stand before `/ready`. */
export const modelReadyRoutes = [
  readyRoute("/api/models/:owner/:name/ready", "modelReady", {
    owner: { type: "string" },
    name: { type: "string", description: "NAME:TAG of OWNER/NAME:TAG." },
  }),
  readyRoute("/api/models/:id/ready", "modelReadyByName", {
    id: { type: "string", description: "OWNER/NAME:TAG with its slash escaped, or an alias." },
  }),
];

function readyRoute(url: string, operationId: string, params: Readonly<Record<string, object>>) {
  return get(url, {
    config: { scope: "chat", errors: ["model_not_found"] },
    operationId,
    summary: "Check whether a model can be asked",
    description: "Loads nothing. A model that is loaded with the first request is ready.",
    params: params as Readonly<Record<string, Readonly<Record<string, unknown>>>>,
    response: {
      ...ok("Requests for it are answered.", modelReadySchema),
      503: { description: "They are not, yet or any longer.", ...json(modelReadySchema) },
    },
    handler: answer,
  });
}

function answer({ catalog, leaving, ...deps }: ModelReadyDeps, request: FastifyRequest, reply: FastifyReply): object {
  const name = Object.values(request.params as Readonly<Record<string, string>>).join("/");
  const { id, ready } = conditionOf(deps.status(), catalog, name);
  const { status, reason, message } = leaving.aborted ? finding("Ready", "ShuttingDown") : ready;
  if (status === "True") return { model: id, status: "ok", reason, message };
  void reply.code(503);
  return { model: id, status: "unready", reason, message };
}

/** Errors: `model_not_found`. */
function conditionOf({ models, conditions }: StatusReport, catalog: ModelReadyDeps["catalog"], name: string) {
  if (conditions.length === 0) return { id: name, ready: { status: "Unknown", ...firstLook } };
  const found = modelNamed(models, catalog.find(name)?.id ?? name);
  const ready = found?.conditions.find(({ type }) => type === "Ready");
  // A model that came after the last pass is in the catalog only.
  return found && ready
    ? { id: found.id, ready }
    : { id: catalog.resolve(name).id, ready: finding("Present", "NotObserved") };
}
