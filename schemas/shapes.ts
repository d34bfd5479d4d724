// The shapes that schemas are made of. Their types are literal: the types of bodies follow from them by json-schema-to-ts.
import type { JSONSchema } from "json-schema-to-ts";

type Properties = Readonly<Record<string, JSONSchema>>;

// No interfaces: those lack the index signature of a schema.
export type OpenObject<R, O> = Readonly<{
  type: "object";
  required: readonly (keyof R & string)[];
  properties: R & O;
}>;

export type ExactObject<R, O> = OpenObject<R, O> & { readonly additionalProperties: false };

/** An object with the required properties, and perhaps the optional ones. Others are taken and left alone. */
export function open<const R extends Properties, const O extends Properties = Record<never, never>>(
  required: R,
  optional?: O,
): OpenObject<R, O> {
  const names = Object.keys(required);
  const properties = { ...required, ...optional };
  return { type: "object", ...(names.length > 0 && { required: names }), properties } as unknown as OpenObject<R, O>;
}

/** The same object without other properties. */
export function exact<const R extends Properties, const O extends Properties = Record<never, never>>(
  required: R,
  optional?: O,
): ExactObject<R, O> {
  return { ...open(required, optional), additionalProperties: false };
}

export type Described<T> = Readonly<{ type: T; description?: string }>;

const plain =
  <const T extends string>(type: T) =>
  (description?: string): Described<T> => ({ type, ...(description !== undefined && { description }) });

export const text = plain("string");
export const integer = plain("integer");
export const number = plain("number");
export const flag = plain("boolean");

export type List<I> = Described<"array"> & { readonly items: I };

export const list = <const I extends JSONSchema>(items: I, description?: string): List<I> => ({
  ...plain("array")(description),
  items,
});

/** A count or size: zero or more. */
export const amount = (description?: string): Described<"integer"> & { readonly minimum: 0 } => ({
  ...integer(description),
  minimum: 0,
});

export const success = { const: true } as const;

export type Maybe<S extends { readonly type: string }> = Omit<S, "type"> &
  Readonly<{ type: readonly [S["type"], "null"] }>;

/** Or null, which clients of typed languages send for what they leave out. */
export const maybe = <const S extends { readonly type: string }>(schema: S): Maybe<S> => ({
  ...schema,
  type: [schema.type, "null"],
});
