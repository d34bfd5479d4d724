// Ollama's routes about the models that there are: lists, details, other names, removal.
import {
  nativeCopySchema,
  nativeModelSchema,
  nativePsSchema,
  nativeShownSchema,
  nativeShowSchema,
  nativeTagsSchema,
  nativeVersionSchema,
} from "../../../schemas/ollama.ts";
import { ok } from "../../../schemas/route.ts";
import { GatewayError } from "../../core/errors.ts";
import { callOf } from "../server/call.ts";
import { changeErrors } from "../server/route-errors.ts";
import { get, post, remove } from "./deps.ts";
import { detailsOfProjector, listedModel, shownModel } from "./model-facts.ts";
import { psEntry, showBody, tagEntry } from "./wire/model-records.ts";
import { refusal } from "./wire/requests.ts";

/** The version of Ollama's API that is spoken here; clients refuse to talk to one below 0.6.4. */
const apiVersion = "0.20.0";

const reading = { scope: "chat", anyMediaType: true } as const;

export const libraryRoutes = [
  get("/version", {
    operationId: "nativeVersion",
    summary: "Get the version of this API",
    response: ok("The version.", nativeVersionSchema),
    config: reading,
    handler: () => ({ version: apiVersion }),
  }),
  get("/tags", {
    operationId: "nativeTags",
    summary: "List the models, as Ollama does",
    response: ok("All of them.", nativeTagsSchema),
    config: reading,
    handler: async ({ catalog }) => {
      const entries = catalog.list().map(async (view) => {
        const shown = await listedModel(view);
        // A name given by `copy` is an entry of its own, as with Ollama: pickers offer nothing else.
        const names = [view.model.id, ...view.aliases].map((name) => tagEntry(shown, name));
        return [...names, ...view.variants.map((variant) => tagEntry(shown, variant.name, variant))];
      });
      return { models: (await Promise.all(entries)).flat() };
    },
  }),
  get("/ps", {
    operationId: "nativePs",
    summary: "List the loaded models",
    response: ok("Those that are loaded.", nativePsSchema),
    config: reading,
    handler: async ({ catalog, scheduler }) => {
      const loaded = catalog.list().filter((view) => view.loaded);
      const entries = loaded.map(async (view) =>
        psEntry(await shownModel(view), scheduler.expiresAt(view.model.upstreamId)),
      );
      return { models: await Promise.all(entries) };
    },
  }),
  post("/show", {
    operationId: "nativeShow",
    summary: "Get the details of a model",
    body: nativeShowSchema,
    response: ok("Its details.", nativeShownSchema),
    config: { ...reading, errors: ["model_not_found"] },
    handler: async ({ catalog }, { body }) => {
      const name = modelNameOf(body);
      const { model, variant } = catalog.named(name);
      const view = catalog.view(model.id);
      if (!view) throw new GatewayError("model_not_found", `model '${name}' not found`);
      return showBody(await shownModel(view), await detailsOfProjector(view), variant);
    },
  }),
  remove("/delete", {
    operationId: "nativeDelete",
    summary: "Delete a model or an alias",
    body: nativeModelSchema,
    response: ok("It is deleted."),
    config: { anyMediaType: true, errors: [...changeErrors, "cache_unwritable", "cache_read_only"] },
    handler: async ({ edits }, request, reply) => {
      const name = modelNameOf(request.body);
      const call = callOf(request, reply);
      // An alias goes alone: it is another name of files that stay.
      if (!(await edits.removeAlias(name, call))) await edits.remove(name, call);
      return reply.code(200).send();
    },
  }),
  post("/copy", {
    operationId: "nativeCopy",
    summary: "Give a model an alias",
    body: nativeCopySchema,
    response: ok("The model answers to that name too."),
    config: { anyMediaType: true, errors: changeErrors },
    handler: async ({ edits }, request, reply) => {
      const { source, destination } = request.body;
      await edits.addAlias(source, destination, callOf(request, reply));
      return reply.code(200).send();
    },
  }),
];

/** Clients of different ages call it `model` or `name`; some send both. */
export function modelNameOf({
  model,
  name,
}: {
  readonly model?: string | null;
  readonly name?: string | null;
}): string {
  const given = model || name;
  if (!given) throw refusal("model is required");
  return given;
}
