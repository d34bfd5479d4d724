// The OpenAPI document of the routes that are served, made when it is first asked for.
import type { FastifyInstance, RouteOptions } from "fastify";
import {
  compatErrorSchema,
  gatewayErrorSchema,
  messagesErrorSchema,
  nativeErrorSchema,
} from "../../../schemas/errors.ts";
import { type Contents, json, type RouteAnswer, type RouteSchema, type Schema } from "../../../schemas/route.ts";
import { type ErrorCode, errorCatalog } from "../../core/error-catalog.ts";
import { GatewayError } from "../../core/errors.ts";
import { version } from "../../settings/settings.ts";
import { type Family, renderError } from "./errors.ts";
import { createComponents, mapValues } from "./openapi-components.ts";
import type { RouteFamily } from "./route.ts";
import { errorCodesOf } from "./route-errors.ts";

const families: Readonly<Record<RouteFamily, { tag: string; description: string; errors: Family }>> = {
  own: { tag: "gateway", description: "The gateway's own routes.", errors: "gateway" },
  compat: {
    tag: "compatible",
    description: "Compatible with OpenAI's API and Anthropic's messages.",
    errors: "compat",
  },
  native: { tag: "native", description: "Wire-compatible with Ollama's API.", errors: "native" },
  llama: { tag: "llama.cpp", description: "Routes that llama.cpp's own front ends use.", errors: "compat" },
  front: { tag: "front", description: "The bare address.", errors: "gateway" },
};

const errorSchemas: Readonly<Record<Family | "messages", Schema>> = {
  gateway: gatewayErrorSchema,
  compat: compatErrorSchema,
  native: nativeErrorSchema,
  messages: messagesErrorSchema,
};

const description = [
  "One document states which models there are and how they run; the gateway makes it so, and passes chats on.",
  "A family is served at its prefix and, for clients that add their own path to a root, at further ones: each path is listed.",
  "Where license keys are configured, one goes into `Authorization: Bearer KEY`, `X-License-Key` or `x-api-key`; a",
  "client that can send no header puts `/k/KEY` before any path. `HEAD` is answered wherever `GET` is. The role in an",
  "operation's `security` is the scope that the key needs: where it is `chat`, any key will do.",
].join(" ");

const securitySchemes = {
  bearer: { type: "http", scheme: "bearer", description: "A license key." },
  licenseKey: { type: "apiKey", in: "header", name: "X-License-Key" },
  apiKey: { type: "apiKey", in: "header", name: "x-api-key" },
} as const;

declare module "fastify" {
  interface FastifyInstance {
    /** The OpenAPI document. */
    readonly openApi: () => object;
  }
}

type ServedRoute = RouteOptions & { readonly prefix?: string };

/** Call it before the routes are registered. */
export function installOpenApi(app: FastifyInstance): void {
  const served: ServedRoute[] = [];
  app.addHook("onRoute", (route) => {
    // The description says it for all.
    if (route.method !== "HEAD") served.push(route);
  });
  let made: object | null = null;
  app.decorate("openApi", () => (made ??= documentOf(served)));
}

function documentOf(served: readonly ServedRoute[]): object {
  const components = createComponents();
  const paths: Record<string, Record<string, object>> = {};
  for (const route of served) {
    const { document } = route.config ?? {};
    if (!document) throw new Error(`${String(route.method)} ${route.url} has no description`);
    const rest = Object.keys(document.params ?? {}).at(-1) ?? "*";
    const path = route.url.replace("*", `:${rest}`).replace(/:(\w+)/g, "{$1}");
    (paths[path] ??= {})[String(route.method).toLowerCase()] = describe(document, route, components);
  }
  return {
    openapi: "3.1.0",
    info: { title: "Model Gateway", version, description, license: { name: "MIT", identifier: "MIT" } },
    servers: [{ url: "/" }],
    tags: Object.values(families).map(({ tag, description: about }) => ({ name: tag, description: about })),
    components: { securitySchemes, ...components.parts() },
    paths,
  };
}

type Components = ReturnType<typeof createComponents>;

function describe(document: RouteSchema, route: ServedRoute, components: Components): object {
  const { operationId, summary, description: about, params, querystring, headers, body, response } = document;
  const { family = "own" } = route.config ?? {};
  const required = (querystring?.["required"] ?? []) as readonly string[];
  const parameters = [
    ...parametersIn("path", params, () => true),
    ...parametersIn("query", querystring?.["properties"] as Record<string, Schema>, (name) => required.includes(name)),
    ...parametersIn(
      "header",
      mapValues(headers ?? {}, (text) => ({ type: "string", description: text })),
    ),
  ];
  return {
    operationId: components.isNew(operationId) ? operationId : `${operationId}_${slug(route.prefix ?? "")}`,
    summary,
    ...(about !== undefined && { description: about }),
    tags: [families[family].tag],
    security: securityOf(route),
    ...(parameters.length > 0 && { parameters }),
    ...(body && {
      requestBody: {
        required: true,
        ...placeContents("content" in body ? (body as Contents) : json(body), components),
      },
    }),
    responses: { ...errorAnswers(document, route, family, components), ...placeAnswers(response, components) },
  };
}

function parametersIn(
  place: "path" | "query" | "header",
  schemas: Readonly<Record<string, Schema>> = {},
  isRequired: (name: string) => boolean = () => false,
): object[] {
  return Object.entries(schemas).map(([name, { description: about, ...schema }]) => ({
    name,
    in: place,
    required: isRequired(name),
    ...(about !== undefined && { description: about }),
    schema,
  }));
}

function placeContents({ content }: Contents, { place }: Components): object {
  return { content: mapValues(content, ({ schema }) => ({ schema: place(schema) })) };
}

function placeAnswers(response: Readonly<Record<number, RouteAnswer>>, components: Components): object {
  return mapValues(response, ({ description: about, content }) => ({
    description: about,
    ...(content && placeContents({ content }, components)),
  }));
}

/** A role is the scope that the key needs. */
const keysWith = (...roles: string[]): Record<string, string[]>[] =>
  Object.keys(securitySchemes).map((scheme) => ({ [scheme]: roles }));

function securityOf({ config: { licenseKey, scope } = {} }: RouteOptions): Record<string, string[]>[] {
  if (licenseKey === "none") return [];
  return licenseKey === "short" ? [{}, ...keysWith()] : keysWith(scope ?? "all");
}

/** One answer per status, with an example per code. */
function errorAnswers(schema: RouteSchema, route: RouteOptions, of: RouteFamily, components: Components): object {
  const family = route.config?.dialect ?? families[of].errors;
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of errorCodesOf({ method: String(route.method), schema, config: route.config ?? {} })) {
    const { status } = errorCatalog[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  const answers = [...byStatus].map(([status, codes]) => [
    status,
    components.share(`${family}.${codes.join(".")}`, () => errorAnswer(family, codes, components)),
  ]);
  return Object.fromEntries(answers) as object;
}

function errorAnswer(family: Family | "messages", codes: readonly ErrorCode[], components: Components): object {
  const example = (code: ErrorCode): [string, object] => [
    code,
    { value: renderError(family, new GatewayError(code, "what is the matter")).body },
  ];
  return {
    description: codes.map((code) => `\`${code}\`: ${errorCatalog[code].hint}`).join("\n\n"),
    content: {
      "application/json": {
        schema: components.place(errorSchemas[family]),
        examples: Object.fromEntries(codes.map(example)),
      },
    },
  };
}

/** `/alpha/v1` → `alpha_v1`; the root is `root`. */
function slug(prefix: string): string {
  return prefix.split("/").filter(Boolean).join("_") || "root";
}
