// Ollama's routes about the models that there are: lists, details, other names, removal.

import type { FastifyInstance } from "fastify";
import { capabilitiesOf } from "../../cache/layout/capabilities.ts";
import { GatewayError } from "../../core/errors.ts";
import { callOf } from "../server/call.ts";
import type { NativeRoutesDeps } from "./deps.ts";
import { detailsOf, detailsOfProjector, factsOf } from "./model-facts.ts";
import { booleanOf, modelNameOf, parseBody, refuse, stringOf, taken } from "./wire/fields.ts";
import { psBody, tagsBody } from "./wire/model-records.ts";
import { showBody } from "./wire/show-body.ts";

export function libraryRoutes(app: FastifyInstance, deps: NativeRoutesDeps): void {
  const { catalogue, edits, scheduler } = deps;

  // A name that somebody gave it by `copy` is an entry of its own, as with Ollama: pickers offer nothing else.
  app.get("/tags", async () => {
    const facts = await Promise.all(
      catalogue.list().map(async (view) => {
        const own = await factsOf(view);
        return [own, ...view.aliases.map((id) => ({ ...own, id }))];
      }),
    );
    return tagsBody(facts.flat());
  });
  app.get("/ps", async () => {
    const loaded = catalogue.list().filter((view) => view.loaded);
    return psBody(
      await Promise.all(
        loaded.map(async (view) => ({
          ...(await factsOf(view)),
          expiresAt: scheduler.expiresAt(view.model.upstreamId),
        })),
      ),
    );
  });

  app.post("/show", async (request) => {
    const { name } = taken(
      parseBody(request.body, (body) => {
        booleanOf(body["verbose"] ?? false, "verbose");
        return { name: modelNameOf(body) };
      }),
    );
    const view = catalogue.view(catalogue.resolve(name).id);
    if (!view) throw new GatewayError("model_not_found", `model '${name}' not found`);
    const { model } = view;
    const details = await detailsOf(view);
    return showBody({
      model: await factsOf(view),
      repo: model.repo,
      details,
      projector: await detailsOfProjector(view),
      capabilities: details ? capabilitiesOf(details, view.projector !== null) : ["completion"],
      nCtxTrain: model.nCtxTrain,
    });
  });

  app.delete("/delete", async (request, reply) => {
    const { name } = taken(parseBody(request.body, (body) => ({ name: modelNameOf(body) })));
    const call = callOf(request, reply);
    // An alias goes alone: it is another name of files that stay.
    if (!(await edits.removeAlias(name, call))) await edits.remove(name, call);
    return reply.code(200).send();
  });

  app.post("/copy", async (request, reply) => {
    const { source, destination } = taken(
      parseBody(request.body, (body) => {
        const named = (field: string): string => stringOf(body[field] ?? "", field) || refuse(field, "is required");
        return { source: named("source"), destination: named("destination") };
      }),
    );
    await edits.addAlias(source, destination, callOf(request, reply));
    return reply.code(200).send();
  });
}
