// The description of what is served: a valid document, true in both directions, with examples that fit.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Validator } from "@seriousme/openapi-schema-validator";
import { startTestGateway } from "../support/gateway.ts";
import { type Operation, operations, type Schema } from "../support/operations.ts";
import { assertFits, partsOf } from "../support/schemas.ts";
import { anonymous, watchRoutes } from "../support/served-routes.ts";

interface DescribedOperation {
  readonly operationId: string;
  readonly security: readonly object[];
  readonly responses: Readonly<Record<string, object>>;
}

interface OpenApi {
  readonly openapi: string;
  readonly info: { readonly version: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, DescribedOperation>>>>;
}

const key = "a-license-key-of-the-tests";

interface Described extends DescribedOperation {
  readonly method: string;
  readonly path: string;
}

function describedOperations({ paths }: OpenApi): Described[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ ...operation, method: method.toUpperCase(), path })),
  );
}

function schemasOf({ request, responses, query, parameters }: Operation): Schema[] {
  return [
    ...request.map(({ schema }) => schema),
    ...responses.flatMap(({ content }) => content.map(({ schema }) => schema)),
    ...Object.values(parameters),
    ...(query ? [query] : []),
  ];
}

test("the description and the server", async (t) => {
  const routes = watchRoutes(t);
  const gateway = await startTestGateway(t, { yaml: "version: 1\n", environment: { GATEWAY_LICENSE_KEY: key } });
  const response = await fetch(`${gateway.url}/openapi.json`, { headers: { authorization: `Bearer ${key}` } });
  assert.equal(response.status, 200);
  assert.match(response.headers.get("content-type") ?? "", /^application\/json/);
  const document = (await response.json()) as OpenApi;
  const described = describedOperations(document);

  await t.test("is an OpenAPI document by a public validator", async () => {
    const { valid, errors } = await new Validator().validate(
      JSON.parse(JSON.stringify(document)) as Record<string, unknown>,
    );
    assert.deepEqual([valid, errors], [true, undefined]);
    assert.equal(document.openapi, "3.1.0");
    const ids = described.map(({ operationId }) => operationId);
    assert.deepEqual([...new Set(ids)], ids);
  });

  await t.test("has every route that is served, and no other; keys are needed where it says so", () => {
    const served = routes
      .filter(({ method }) => method !== "HEAD")
      .map(({ method, path, licenseKey }) => `${method} ${path} ${licenseKey}`);
    const told = described.map(
      ({ method, path, security }) => `${method} ${anonymous(path)} ${securityWord(security)}`,
    );
    assert.ok(served.length > 40, `${served.length} routes are served`);
    const only = (list: readonly string[], other: readonly string[]): string[] =>
      list.filter((each) => !other.includes(each)).toSorted();
    assert.deepEqual(
      { onlyServed: only(served, told), onlyTold: only(told, served) },
      { onlyServed: [], onlyTold: [] },
    );
    assert.equal(told.length, served.length);
  });

  await t.test("without a key exactly what needs one is refused", async () => {
    const answers = await Promise.all(
      described.map(async ({ method, path, security }) => {
        const abort = new AbortController();
        const { status } = await fetch(gateway.url + path.replace(/\{[^}]*\}/g, "x"), { method, signal: abort.signal });
        abort.abort();
        return {
          what: `${method} ${path}`,
          isRefused: status === 401,
          isNeeded: securityWord(security) === "required",
        };
      }),
    );
    assert.deepEqual(
      answers.filter(({ isRefused, isNeeded }) => isRefused !== isNeeded),
      [],
    );
  });
});

function securityWord(security: readonly object[]): string {
  if (security.length === 0) return "none";
  return security.some((way) => Object.keys(way).length === 0) ? "short" : "required";
}

test("every example fits its schema", () => {
  let count = 0;
  for (const operation of operations) {
    for (const schema of schemasOf(operation)) {
      for (const part of partsOf(schema)) {
        for (const example of (part["examples"] ?? []) as unknown[]) {
          assertFits(part, example, `${operation.id}, an example`);
          count++;
        }
      }
    }
  }
  assert.ok(count > 25, `${count} examples`);
});

test("every request body has an example", () => {
  const without = operations.flatMap(({ id, request }) =>
    request.filter(({ mediaType, schema }) => mediaType === "application/json" && !hasExample(schema)).map(() => id),
  );
  assert.deepEqual(without, []);
});

function hasExample(schema: Schema): boolean {
  return [schema, ...((schema["anyOf"] ?? []) as Schema[])].some((each) => "examples" in each);
}
