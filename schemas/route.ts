// What a route states about its requests and answers, and the types that follow from it for its handler.
import type { FromSchema, JSONSchema } from "json-schema-to-ts";

/** A JSON Schema, in the words that draft-07 and 2020-12 share. */
export type Schema = Readonly<Record<string, unknown>>;

/** Schemas by media type; several where the client chooses. */
export interface Contents {
  readonly content: Readonly<Record<string, { readonly schema: Schema }>>;
}

export interface RouteAnswer extends Partial<Contents> {
  readonly description: string;
}

export interface RouteSchema {
  /** Unique; camelCase. */
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  /** Parameters in the path, by name. */
  readonly params?: Readonly<Record<string, Schema>>;
  /** An object schema with a property per parameter; requests are checked against it. */
  readonly querystring?: Schema;
  /** Request headers with a meaning of their own, each with its description. */
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON, checked against the schema; a body given by media type is only documented. */
  readonly body?: Schema | Contents;
  readonly response: Readonly<Record<number, RouteAnswer>>;
}

type Typed<S> = S extends JSONSchema ? FromSchema<S> : unknown;

/** Types of the checked parts of a request. */
export interface TypesOf<S> {
  readonly Body: S extends { readonly body: infer B } ? (B extends Contents ? unknown : Typed<B>) : unknown;
  readonly Querystring: S extends { readonly querystring: infer Q } ? Typed<Q> : unknown;
  readonly Params: Readonly<Record<string, string>>;
}

export const textSchema = { type: "string" } as const;

export function json(schema: Schema): Contents {
  return { content: { "application/json": { schema } } };
}

/** Server-sent events; the schema is that of the data of one. */
export function events(schema: Schema): Contents {
  return { content: { "text/event-stream": { schema } } };
}

/** JSON, a record per line; the schema is that of one. */
export function lines(schema: Schema): Contents {
  return { content: { "application/x-ndjson": { schema } } };
}

export function contents(...all: readonly Contents[]): Contents {
  return { content: Object.assign({}, ...all.map(({ content }) => content)) as Contents["content"] };
}

/** The answer with status 200; a schema is one of JSON. */
export function ok(description: string, ...all: readonly (Contents | Schema)[]): RouteSchema["response"] {
  const kinds = all.map((each) => ("content" in each ? (each as Contents) : json(each)));
  return { 200: { description, ...(all.length > 0 && contents(...kinds)) } };
}
