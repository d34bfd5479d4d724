// The routes that a gateway serves, as the tests go through them: one operation per route, below its family's prefixes.
import type { Contents, RouteAnswer, Schema } from "../../schemas/route.ts";
import { routesByFamily } from "../../src/http/app.ts";
import type { RouteFamily } from "../../src/http/server/route.ts";
import { errorCodesOf } from "../../src/http/server/route-errors.ts";

export type { Schema } from "../../schemas/route.ts";

export interface Content {
  /** `application/json` */
  readonly mediaType: string;
  readonly schema: Schema;
}

export interface Operation {
  readonly id: string;
  readonly family: RouteFamily;
  readonly method: string;
  /** Below the family's prefix, parameters as `{name}`. */
  readonly path: string;
  readonly summary: string;
  /** Without a license key: `required` is refused, `short` is answered in part, `none` as always. */
  readonly key: "required" | "short" | "none";
  readonly scope?: "chat";
  readonly parameters: Readonly<Record<string, Schema>>;
  readonly query?: Schema;
  /** Empty where the route takes none. */
  readonly request: readonly Content[];
  readonly responses: readonly { readonly status: number; readonly content: readonly Content[] }[];
  readonly errors: readonly string[];
  readonly dialect?: "messages";
}

const json = "application/json";

export const operations: readonly Operation[] = Object.entries(routesByFamily).flatMap(([family, routes]) =>
  routes.map((route): Operation => {
    const { operationId, summary, params = {}, querystring, body, response } = route.schema;
    const { licenseKey = "required", scope, dialect } = route.config ?? {};
    const rest = Object.keys(params).at(-1) ?? "*";
    return {
      id: operationId,
      family: family as RouteFamily,
      method: route.method,
      path: route.url
        .replace(/\/$/, "")
        .replace("*", `{${rest}}`)
        .replace(/:(\w+)/g, "{$1}"),
      summary,
      key: licenseKey === "network" ? "required" : licenseKey,
      ...(scope && { scope }),
      parameters: params,
      ...(querystring && { query: querystring }),
      request: body
        ? contentsOf("content" in body ? (body as Contents) : { content: { [json]: { schema: body } } })
        : [],
      responses: Object.entries(response).map(([status, answer]) => ({
        status: Number(status),
        content: contentsOf(answer),
      })),
      errors: errorCodesOf(route),
      ...(dialect && { dialect }),
    };
  }),
);

function contentsOf({ content = {} }: Contents | RouteAnswer): readonly Content[] {
  return Object.entries(content).map(([mediaType, { schema }]) => ({ mediaType, schema }));
}
