// The history over HTTP: listed, one generation with its changes, put back; and fields that are reset to the applied file.
import { generationSchema, historySchema, resetSchema } from "../../../schemas/history.ts";
import { ok } from "../../../schemas/route.ts";
import { GatewayError } from "../../core/errors.ts";
import { toInput } from "../../desired/document/document.ts";
import { formatPath } from "../../desired/document/problem.ts";
import type { HistoryBook } from "../../desired/history/book.ts";
import { fieldsOf, type HistoryEntry } from "../../desired/history/entries.ts";
import { routesOf } from "../server/route.ts";
import { changeOptions, type DesiredRoutesDeps, makeChange } from "./desired.ts";

export interface HistoryRoutesDeps extends DesiredRoutesDeps {
  readonly history: HistoryBook;
}

const params = { generation: { type: "integer", description: "Its number." } } as const;

const { get, post } = routesOf<HistoryRoutesDeps>();

export const historyRoutes = [
  get("/api/history", {
    operationId: "history",
    summary: "List the last generations",
    response: ok("The generations, and what drifted.", historySchema),
    handler: ({ history, store }) => {
      const { entries, drifts } = history.current();
      return {
        generation: store.current().generation,
        entries: entries.toReversed().map(entryBody),
        drifts: drifts.toReversed(),
      };
    },
  }),
  get("/api/history/:generation", {
    config: { errors: ["generation_not_found", "invalid_request"] },
    operationId: "generation",
    summary: "Get a generation",
    params,
    response: ok("What it changed, and its document.", generationSchema),
    handler: ({ history }, request) => {
      const generation = generationOf(request.params);
      const entry = history.entry(generation);
      const changes = entry.changes
        .flatMap(fieldsOf)
        .map(({ path, ...sides }) => ({ field: formatPath(path), ...sides }));
      return { ...entryBody(entry), changes, document: toInput(history.tree(generation)) };
    },
  }),
  post("/api/history/:generation/rollback", {
    operationId: "rollback",
    summary: "Roll back to a generation",
    description: "Makes a new generation with the document of an earlier one. gateway.yaml stays as it is.",
    ...changeOptions,
    config: { errors: [...changeOptions.config.errors, "generation_not_found"] },
    params,
    handler: (deps, request, reply) => {
      const generation = generationOf(request.params);
      const tree = deps.history.restored(generation, deps.store.current().tree);
      return makeChange(deps, request, reply, {
        change: { kind: "restore", tree },
        by: `http:POST /api/history/${generation}/rollback`,
      });
    },
  }),
  post("/api/desired/reset", {
    operationId: "reset",
    summary: "Reset fields to the applied file",
    description: "Takes out what calls have set: all of it, or the fields that are named.",
    ...changeOptions,
    body: resetSchema,
    parse: (body) => body ?? {},
    handler: (deps, request, reply) =>
      makeChange(deps, request, reply, { change: { kind: "reset", fields: request.body.fields ?? null } }),
  }),
];

function entryBody({ changes, ...entry }: HistoryEntry): object {
  return { ...entry, fields: changes.flatMap(fieldsOf).map(({ path }) => formatPath(path)) };
}

/** Errors: `invalid_request`. */
function generationOf({ generation = "" }: Readonly<Record<string, string>>): number {
  if (/^\d{1,15}$/.test(generation)) return Number(generation);
  throw new GatewayError(
    "invalid_request",
    `${JSON.stringify(generation.slice(0, 50))} is no generation: a whole number is`,
  );
}
