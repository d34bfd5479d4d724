// Ollama's routes about the models that there are: lists, details, other names, removal.

import {
  nativeCopySchema,
  nativeModelSchema,
  nativePsSchema,
  nativeShownSchema,
  nativeShowSchema,
  nativeTagsSchema,
} from "../../../schemas/ollama.ts";
import { json, ok } from "../../../schemas/route.ts";
import { capabilitiesOf } from "../../cache/layout/capabilities.ts";
import type { ModelView } from "../../catalog/catalog.ts";
import { GatewayError } from "../../core/errors.ts";
import { callOf } from "../server/call.ts";
import { type Route, route } from "../server/route.ts";
import { changeErrors } from "../server/route-errors.ts";
import type { NativeRoutesDeps } from "./deps.ts";
import { detailsOf, detailsOfProjector, factsOf } from "./model-facts.ts";
import { booleanOf, modelNameOf, objectOf, refuse, stringOf } from "./wire/fields.ts";
import { psEntry, showBody, tagEntry } from "./wire/model-records.ts";

const reading = { scope: "chat", anyMediaType: true } as const;

const listRoutes: readonly Route<NativeRoutesDeps>[] = [
  route({
    method: "GET",
    url: "/tags",
    config: reading,
    schema: {
      operationId: "nativeTags",
      summary: "List the models, as Ollama does",
      response: ok("All of them.", json(nativeTagsSchema)),
    },
    handler: async ({ catalog }: NativeRoutesDeps) => {
      const facts = await Promise.all(
        catalog.list().map(async (view) => {
          const own = await factsOf(view);
          // A name given by `copy` is an entry of its own, as with Ollama: pickers offer nothing else.
          return [own, ...view.aliases.map((id) => ({ ...own, id }))];
        }),
      );
      return { models: facts.flat().map(tagEntry) };
    },
  }),
  route({
    method: "GET",
    url: "/ps",
    config: reading,
    schema: {
      operationId: "nativePs",
      summary: "List the loaded models",
      response: ok("Those that are loaded.", json(nativePsSchema)),
    },
    handler: async ({ catalog, scheduler }: NativeRoutesDeps) => {
      const loaded = catalog.list().filter((view) => view.loaded);
      const expiresAt = ({ model }: ModelView): number | null => scheduler.expiresAt(model.upstreamId);
      return { models: await Promise.all(loaded.map(async (view) => psEntry(await factsOf(view), expiresAt(view)))) };
    },
  }),
  route({
    method: "POST",
    url: "/show",
    config: { ...reading, errors: ["model_not_found"] },
    schema: {
      operationId: "nativeShow",
      summary: "Get the details of a model",
      body: json(nativeShowSchema),
      response: ok("Its details.", json(nativeShownSchema)),
    },
    handler: async ({ catalog }: NativeRoutesDeps, request) => {
      const body = objectOf(request.body);
      booleanOf(body["verbose"] ?? false, "verbose");
      const name = modelNameOf(body);
      const view = catalog.view(catalog.resolve(name).id);
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
    },
  }),
];

export const libraryRoutes: readonly Route<NativeRoutesDeps>[] = [
  ...listRoutes,
  route({
    method: "DELETE",
    url: "/delete",
    config: { anyMediaType: true, errors: [...changeErrors, "cache_unwritable"] },
    schema: {
      operationId: "nativeDelete",
      summary: "Delete a model or an alias",
      body: json(nativeModelSchema),
      response: ok("It is deleted."),
    },
    handler: async ({ edits }: NativeRoutesDeps, request, reply) => {
      const name = modelNameOf(objectOf(request.body));
      const call = callOf(request, reply);
      // An alias goes alone: it is another name of files that stay.
      if (!(await edits.removeAlias(name, call))) await edits.remove(name, call);
      return reply.code(200).send();
    },
  }),
  route({
    method: "POST",
    url: "/copy",
    config: { anyMediaType: true, errors: changeErrors },
    schema: {
      operationId: "nativeCopy",
      summary: "Give a model an alias",
      body: json(nativeCopySchema),
      response: ok("The model answers to that name too."),
    },
    handler: async ({ edits }: NativeRoutesDeps, request, reply) => {
      const body = objectOf(request.body);
      const named = (field: string): string => stringOf(body[field] ?? "", field) || refuse(field, "is required");
      await edits.addAlias(named("source"), named("destination"), callOf(request, reply));
      return reply.code(200).send();
    },
  }),
];
