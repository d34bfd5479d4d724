// The shared parts of the OpenAPI document: a schema with a title and an error answer stand in it once. Pure.
import type { Schema } from "../../../schemas/route.ts";

/** The keywords whose value holds schemas. What stands under others, as under `examples`, is data. */
const inLists = new Set(["anyOf", "oneOf", "allOf"]);
const asValue = new Set(["items", "additionalProperties", "propertyNames", "not"]);

export function createComponents(): {
  /** Whether it is the first use of an operation's id. */
  isNew(operationId: string): boolean;
  /** The schema for a place in the document: a reference where it has a title. Throws where two schemas have one title. */
  place(schema: Schema): Schema;
  /** A reference to an answer that many operations share, by its name. */
  share(name: string, make: () => object): object;
  /** What the references point to. */
  parts(): { readonly schemas: object; readonly responses: object };
} {
  const ids = new Set<string>();
  const schemas = new Map<string, { readonly origin: Schema; readonly placed: Schema }>();
  const answers = new Map<string, object>();

  function place(schema: Schema): Schema {
    const { title } = schema;
    if (typeof title !== "string") return mapValues(schema, part);
    const { origin, placed } = schemas.get(title) ?? { origin: schema, placed: mapValues(schema, part) };
    if (origin !== schema) throw new Error(`two schemas have the title ${title}`);
    schemas.set(title, { origin, placed });
    return { $ref: `#/components/schemas/${title}` };
  }

  function part(value: unknown, keyword: string): unknown {
    if (Array.isArray(value)) return inLists.has(keyword) ? (value as Schema[]).map(place) : value;
    if (typeof value !== "object" || value === null) return value;
    if (keyword === "properties") return mapValues(value as Record<string, Schema>, place);
    return asValue.has(keyword) ? place(value as Schema) : value;
  }

  return {
    isNew: (id) => !ids.has(id) && ids.add(id).has(id),
    place,
    share: (name, make) => {
      if (!answers.has(name)) answers.set(name, make());
      return { $ref: `#/components/responses/${name}` };
    },
    parts: () => ({
      schemas: mapValues(
        Object.fromEntries([...schemas].toSorted(([a], [b]) => (a < b ? -1 : 1))),
        (each) => each.placed,
      ),
      responses: Object.fromEntries(answers),
    }),
  };
}

export function mapValues<V, W>(
  record: Readonly<Record<string, V>>,
  change: (value: V, key: string) => W,
): Record<string, W> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value, key)]));
}
