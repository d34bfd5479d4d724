// Builds the OpenAPI document from the table of operations and the catalogue of errors. Pure: it reads no settings and
// serves nothing.
import {
  compatErrorSchema,
  gatewayErrorSchema,
  messagesErrorSchema,
  nativeErrorSchema,
} from "../../../schemas/errors.ts";
import { errorCodesOf } from "../../../schemas/operations/errors.ts";
import type { Content, Operation, OperationFamily, Schema } from "../../../schemas/operations/operation.ts";
import { type ErrorCode, errorCatalog, isErrorCode } from "../../core/error-catalog.ts";
import { GatewayError } from "../../core/errors.ts";
import { type Dialect, type Family, renderError } from "./errors.ts";

/** Where each family is served, the main prefix first; `""` is the root. */
export type Prefixes = Readonly<Record<OperationFamily, readonly string[]>>;

export interface OpenApiInput {
  readonly operations: readonly Operation[];
  readonly prefixes: Prefixes;
  readonly version: string;
}

const families: Readonly<Record<OperationFamily, { tag: string; description: string; errors: Family }>> = {
  own: { tag: "gateway", description: "The gateway's own routes.", errors: "gateway" },
  compat: {
    tag: "compatible",
    description: "Compatible with OpenAI's API and Anthropic's messages.",
    errors: "compat",
  },
  native: { tag: "native", description: "Wire-compatible with Ollama's API.", errors: "native" },
  llama: { tag: "llama.cpp", description: "What llama.cpp's own front ends look for.", errors: "compat" },
  front: { tag: "front", description: "The bare address.", errors: "gateway" },
};

const errorSchemas: Readonly<Record<Family | "messages", Schema>> = {
  gateway: gatewayErrorSchema,
  compat: compatErrorSchema,
  native: nativeErrorSchema,
  messages: messagesErrorSchema,
};

const description = [
  "One document says which models are there and how they run; the gateway makes it so, and passes chats on.",
  "A family is served at its prefix and, for clients that know only a root, at further ones: each path is listed.",
  "Where license keys are configured, one goes into `Authorization: Bearer KEY`, `X-License-Key` or `x-api-key`; a",
  "client that can send no header puts `/k/KEY` before any path. `HEAD` is answered wherever `GET` is. The role in an",
  "operation's `security` is the scope that the key needs: where it is `chat`, any key will do.",
].join(" ");

/** OpenAPI 3.1. Throws where two schemas have one title, or an operation names an error that the catalogue lacks. */
export function openApiDocument({ operations, prefixes, version }: OpenApiInput): object {
  const schemas = createSchemas();
  const responses: Record<string, object> = {};
  const paths: Record<string, Record<string, object>> = {};
  for (const operation of operations) {
    const { family, method, path, id } = operation;
    const description = describe(operation, schemas.place, (name, build) => {
      responses[name] ??= build();
      return { $ref: `#/components/responses/${name}` };
    });
    for (const [index, prefix] of prefixes[family].entries()) {
      const url = `${prefix}${path}` || "/";
      const item = (paths[url] ??= {});
      if (item[method.toLowerCase()]) throw new Error(`${method} ${url} is described twice`);
      item[method.toLowerCase()] = { operationId: index === 0 ? id : `${id}_${slug(prefix)}`, ...description };
    }
  }
  return {
    openapi: "3.1.0",
    info: { title: "Model Gateway", version, description, license: { name: "MIT", identifier: "MIT" } },
    servers: [{ url: "/" }],
    tags: Object.values(families).map(({ tag, description }) => ({ name: tag, description })),
    paths,
    components: {
      schemas: schemas.all(),
      responses,
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer", description: "A license key." },
        licenseKey: { type: "apiKey", in: "header", name: "X-License-Key" },
        apiKey: { type: "apiKey", in: "header", name: "x-api-key" },
      },
    },
  };
}

/** A role is the scope that the key needs. */
const keysWith = (...roles: readonly string[]): object[] => [
  { bearer: roles },
  { licenseKey: roles },
  { apiKey: roles },
];

function securityOf({ key, scope }: Operation): object[] {
  if (key === "none") return [];
  return key === "short" ? [{}, ...keysWith()] : keysWith(scope ?? "all");
}

type Place = (schema: Schema) => Schema;
/** A response that many operations share, by its name. */
type Share = (name: string, build: () => object) => object;

function describe(operation: Operation, place: Place, share: Share): object {
  const { family, summary, description, parameters = {}, query, headers = {}, request } = operation;
  const described = [
    ...Object.entries(parameters).map(([name, schema]) => ({
      name,
      in: "path",
      required: true,
      schema: place(schema),
    })),
    ...queryParameters(query, place),
    ...Object.entries(headers).map(([name, text]) => ({
      name,
      in: "header",
      description: text,
      schema: { type: "string" },
    })),
  ];
  return {
    tags: [families[family].tag],
    summary,
    ...(description === undefined ? {} : { description }),
    security: securityOf(operation),
    ...(described.length === 0 ? {} : { parameters: described }),
    ...(request
      ? { requestBody: { required: request.required !== false, content: contents(request.content, place) } }
      : {}),
    responses: { ...errorResponses(operation, place, share), ...answers(operation, place) },
  };
}

function queryParameters(query: Schema | undefined, place: Place): object[] {
  const { properties = {}, required = [] } = (query ?? {}) as {
    readonly properties?: Readonly<Record<string, Schema>>;
    readonly required?: readonly string[];
  };
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: "query",
    ...(required.includes(name) ? { required: true } : {}),
    schema: place(schema),
  }));
}

function contents(list: readonly Content[], place: Place): object {
  return Object.fromEntries(
    list.map(({ mediaType, schema }) => {
      const [example] = (schema["examples"] ?? []) as readonly unknown[];
      return [mediaType, { schema: place(schema), ...(example === undefined ? {} : { example }) }];
    }),
  );
}

function answers({ responses }: Operation, place: Place): Record<string, object> {
  return Object.fromEntries(
    responses.map(({ status, description, content }) => [
      String(status),
      { description, ...(content.length === 0 ? {} : { content: contents(content, place) }) },
    ]),
  );
}

/** One response per status, with an example per code. */
function errorResponses(operation: Operation, place: Place, share: Share): Record<string, object> {
  const family = operation.dialect ?? families[operation.family].errors;
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of errorCodesOf(operation)) {
    if (!isErrorCode(code)) throw new Error(`${operation.id} names an error that is in no catalogue: ${code}`);
    const { status } = errorCatalog[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  const schema = place(errorSchemas[family]);
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => [
      String(status),
      share(`${family}.${codes.join(".")}`, () => ({
        description: codes.map((code) => `\`${code}\`: ${errorCatalog[code].hint}`).join("\n\n"),
        content: { "application/json": { schema, examples: examplesOf(family, codes) } },
      })),
    ]),
  );
}

function examplesOf(family: Family | Dialect, codes: readonly ErrorCode[]): object {
  return Object.fromEntries(
    codes.map((code) => [code, { value: renderError(family, new GatewayError(code, "what is the matter")).body }]),
  );
}

interface Schemas {
  /** The schema for a place in the document: a reference where it has a title. */
  place(schema: Schema): Schema;
  all(): Readonly<Record<string, Schema>>;
}

function createSchemas(): Schemas {
  const named = new Map<string, Schema>();
  const origins = new Map<string, string>();

  function place(schema: Schema): Schema {
    const { title } = schema;
    if (typeof title !== "string") return inner(schema);
    const origin = JSON.stringify(schema);
    const known = origins.get(title);
    if (known === undefined) {
      origins.set(title, origin);
      named.set(title, inner(schema));
    } else if (known !== origin) {
      throw new Error(`two schemas have the title ${title}`);
    }
    return { $ref: `#/components/schemas/${title}` };
  }

  function inner(schema: Schema): Schema {
    return Object.fromEntries(Object.entries(schema).map(([keyword, value]) => [keyword, part(keyword, value)]));
  }

  function part(keyword: string, value: unknown): unknown {
    if (Array.isArray(value)) return inLists.has(keyword) ? (value as Schema[]).map(place) : value;
    if (typeof value !== "object" || value === null) return value;
    if (keyword === "properties")
      return Object.fromEntries(
        Object.entries(value as Record<string, Schema>).map(([name, each]) => [name, place(each)]),
      );
    return asValue.has(keyword) ? place(value as Schema) : value;
  }

  return { place, all: () => Object.fromEntries([...named].toSorted(([a], [b]) => (a < b ? -1 : 1))) };
}

/** The keywords whose value holds schemas. What stands under others, as under `examples`, is data. */
const inLists = new Set(["anyOf", "oneOf", "allOf"]);
const asValue = new Set(["items", "additionalProperties", "propertyNames", "not"]);

/** `/alpha/v1` → `alpha_v1`; the root is `root`. */
function slug(prefix: string): string {
  return prefix.split("/").filter(Boolean).join("_") || "root";
}
