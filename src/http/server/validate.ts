// Checks requests of the gateway's own routes against their schemas: every problem at once, each naming its field.
import { Ajv, type ErrorObject, type ValidateFunction } from "ajv";
import { GatewayError } from "../../core/errors.ts";

/** Answers with the value in its type. Errors: `invalid_request`. */
export type Check<T> = (value: unknown) => T;

const exact = new Ajv({ allErrors: true, verbose: true });
/** A query is text: numbers are read from it. */
const fromText = new Ajv({ allErrors: true, verbose: true, coerceTypes: true, useDefaults: true });

/** At its first use: compiled at the start, all of them together are a tenth of the program's memory. */
function compiled<T>(ajv: Ajv, schema: object): () => ValidateFunction<T> {
  let fits: ValidateFunction<T> | undefined;
  return () => (fits ??= ajv.compile<T>(schema));
}

export function bodyCheck<T>(schema: { readonly type?: string }): Check<T> {
  const check = compiled<T>(exact, schema);
  return (value) => {
    const fits = check();
    if (value === undefined || value === null)
      throw new GatewayError("invalid_request", `the body is empty; a JSON ${schema.type ?? "object"} is expected`);
    if (fits(value)) return value;
    throw refusal(fits.errors ?? [], "field");
  };
}

/** Unknown parameters are refused: a mistyped one must not become the real thing. */
export function queryCheck<T>(schema: object): Check<T> {
  const check = compiled<T>(fromText, schema);
  return (value) => {
    const fits = check();
    // Numbers are put in place of their texts: in a copy.
    const copy: unknown = { ...(value as object) };
    if (fits(copy)) return copy;
    throw refusal(fits.errors ?? [], "query parameter");
  };
}

/** A stranger's address has room for 4000 unknown parameters, which made an answer of 200 KB. */
const mostTold = 20;

function refusal(all: readonly ErrorObject[], what: "field" | "query parameter"): GatewayError {
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
      return `${String(parameters["missingProperty"])} is missing`;
    case "minProperties":
    case "maxProperties":
      return `one of ${Object.keys(schema?.properties ?? {}).join(" and ")} is needed`;
    case "type":
      return name === ""
        ? `the body must be a JSON ${String(parameters["type"])}`
        : `${name} must be ${article(parameters["type"])}`;
    case "enum":
      return `${name} must be one of ${(parameters["allowedValues"] as readonly unknown[]).join(", ")}`;
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

function article(type: unknown): string {
  const text = String(type);
  return `${/^[aeio]/.test(text) ? "an" : "a"} ${text}`;
}

/** `workers[1]` of `/workers/1`. */
function nameOf(pointer: string): string {
  return pointer
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"))
    .map((part, index) => (/^\d+$/.test(part) ? `[${part}]` : index > 0 ? `.${part}` : part))
    .join("");
}
