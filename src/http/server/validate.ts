// Checks requests against the schemas of their routes: every problem at once, each naming its field.
import { Ajv, type ErrorObject, type ValidateFunction } from "ajv";
import type { FastifySchemaCompiler, FastifySchemaValidationError } from "fastify";
import { GatewayError } from "../../core/errors.ts";
import { formatPath } from "../../desired/document/problem.ts";
import { pathOf } from "../../desired/document/validate.ts";

const exact = new Ajv({ allErrors: true, verbose: true });
/** A query is text: numbers are read from it. */
const fromText = new Ajv({ allErrors: true, verbose: true, coerceTypes: true, useDefaults: true });

/** Compiled at the first request: compiled at the start, all of them together are a tenth of the program's memory. */
const compileWith =
  (bodies: Ajv): FastifySchemaCompiler<object> =>
  ({ schema, httpPart }) => {
    let fits: ValidateFunction | undefined;
    return (value: unknown) => {
      fits ??= (httpPart === "querystring" ? fromText : bodies).compile(schema);
      return fits(value) || { error: (fits.errors ?? []) as FastifySchemaValidationError[] };
    };
  };

export const compileCheck = compileWith(exact);

/** Of bodies that may have 300,000 values: to name what is wrong with each took 170 ms, so only the first is named. */
export const compileFirst = compileWith(new Ajv({ verbose: true, allowUnionTypes: true }));

/** An address without a key may hold 4000 unknown parameters, which made a response of 200 KB. */
const mostTold = 20;

export function refusalOf(found: readonly FastifySchemaValidationError[], part: string): GatewayError {
  const all = found as readonly ErrorObject[];
  const what = part === "querystring" ? "query parameter" : "field";
  const errors = all.slice(0, mostTold);
  const texts = [...new Set(errors.map((error) => describe(error, what)))];
  if (all.length > mostTold) texts.push(`and ${all.length - mostTold} more`);
  const [param] = errors.map(fieldOf).filter((field) => field !== "");
  return new GatewayError("invalid_request", texts.join("; "), param === undefined ? {} : { param });
}

function describe(error: ErrorObject, what: string): string {
  const name = nameOf(error.instancePath);
  const parameters = error.params as Readonly<Record<string, unknown>>;
  const schema = error.parentSchema as { readonly properties?: object; readonly description?: string } | undefined;
  switch (error.keyword) {
    case "additionalProperties": {
      const known = Object.keys(schema?.properties ?? {}).join(", ");
      const unknown = String(parameters["additionalProperty"]);
      return `unknown ${what} ${unknown}: ${known === "" ? "none is known here" : `${known} are known here`}`;
    }
    case "required":
      return `${name === "" ? "" : `${name}.`}${String(parameters["missingProperty"])} is missing`;
    case "minProperties":
    case "maxProperties":
      return `one of ${Object.keys(schema?.properties ?? {}).join(" and ")} is needed`;
    case "type":
      if (name !== "") return `${name} must be ${article(parameters["type"])}`;
      return error.data === null
        ? `the body is empty; a JSON ${String(parameters["type"])} is expected`
        : `the body must be a JSON ${String(parameters["type"])}`;
    case "enum": {
      const allowed = parameters["allowedValues"] as readonly (string | number | boolean | null)[];
      return `${name} must be one of ${allowed.filter((each) => each !== null).join(", ")}`;
    }
    case "minLength":
    case "minItems":
      return `${name} must not be empty`;
    case "pattern":
      return `${name} ${JSON.stringify(error.data)} is not of the form ${schema?.description ?? "expected"}`;
    default:
      return `${name} ${error.message ?? error.keyword}`;
  }
}

/** The field of the body that is at fault. */
function fieldOf({ instancePath, params }: ErrorObject): string {
  const { missingProperty, additionalProperty } = params as Readonly<Record<string, string | undefined>>;
  return nameOf(instancePath) || (missingProperty ?? additionalProperty ?? "");
}

/** `a string or an array`; that null is as good as absent goes without saying. */
function article(type: unknown): string {
  if (Array.isArray(type))
    return type
      .filter((each) => each !== "null")
      .map(article)
      .join(" or ");
  const text = String(type);
  return `${/^[aeio]/.test(text) ? "an" : "a"} ${text}`;
}

/** `workers[1]` of `/workers/1`. */
function nameOf(pointer: string): string {
  return formatPath(pathOf(pointer));
}
