// Says whether a value is a desired document, with every problem at once and the path of each.
import { Ajv, type ErrorObject } from "ajv";
import { documentSchema, type DocumentInput } from "../../schemas/document.ts";
import { presetProblem } from "../core/preset-keys.ts";
import { type DocumentTree, toTree } from "./document.ts";

export interface Problem {
  /** Keys and indexes from the root. */
  readonly path: readonly (string | number)[];
  readonly message: string;
  /** The unknown key itself is at fault, not its value. */
  readonly atKey?: boolean;
}

export type Validation =
  | { readonly ok: true; readonly tree: DocumentTree }
  | { readonly ok: false; readonly problems: readonly Problem[] };

// strict types off: `type: [a, b]` is what the preset's values need.
const ajv = new Ajv({ allErrors: true, allowUnionTypes: true, verbose: true });
const matchesSchema = ajv.compile<DocumentInput>(documentSchema);

export function validateDocument(value: unknown): Validation {
  if (!matchesSchema(value)) {
    const problems = (matchesSchema.errors ?? []).filter(isForThisShape).map(toProblem);
    return { ok: false, problems: withoutRepeats(problems) };
  }
  const problems = [...duplicateIds(value), ...presetProblems(value), ...portProblems(value)];
  return problems.length > 0 ? { ok: false, problems } : { ok: true, tree: toTree(value) };
}

/** A model is a string or an object: of a failed `anyOf` only the branch that the value resembles is worth telling. */
function isForThisShape(error: ErrorObject): boolean {
  if (error.keyword === "anyOf" || error.keyword === "propertyNames") return false;
  const branch = /\/items\/anyOf\/([01])\//.exec(error.schemaPath);
  if (!branch) return true;
  if (error.keyword === "type" && error.schemaPath.endsWith(`anyOf/${branch[1]}/type`)) {
    return branch[1] === "0" && (typeof error.data !== "object" || error.data === null) && typeof error.data !== "string";
  }
  return branch[1] === "1" || typeof error.data === "string";
}

function toProblem(error: ErrorObject): Problem {
  const path = error.instancePath
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"))
    .map((part) => (/^\d+$/.test(part) ? Number(part) : part));
  const parameters = error.params as Record<string, unknown>;
  switch (error.keyword) {
    case "additionalProperties":
      return { path: [...path, String(parameters["additionalProperty"])], message: "unknown key", atKey: true };
    case "pattern": {
      // A key that breaks `propertyNames` is reported at its parent, with the key's name beside it.
      const key = error.propertyName;
      if (key !== undefined) return { path: [...path, key], message: "not a llama-server option (no dashes in front)", atKey: true };
      return { path, message: /models/.test(error.schemaPath) || /:\[/.test(String(parameters["pattern"])) ? `${JSON.stringify(error.data)} is not of the form OWNER/NAME:TAG` : `${JSON.stringify(error.data)} does not match ${String(parameters["pattern"])}` };
    }
    case "const":
      return { path, message: `must be ${JSON.stringify(parameters["allowedValue"])}` };
    case "enum":
      return { path, message: `must be one of ${(parameters["allowedValues"] as unknown[]).join(", ")}` };
    case "required":
      return { path, message: `${String(parameters["missingProperty"])} is missing` };
    case "type":
      return { path, message: path[0] === "models" && path.length === 2 ? "must be OWNER/NAME:TAG or an object with an id" : `must be ${[parameters["type"]].flat().join(" or ")}` };
    default:
      return { path, message: error.message ?? error.keyword };
  }
}

function withoutRepeats(problems: readonly Problem[]): Problem[] {
  const seen = new Set<string>();
  return problems.filter((problem) => {
    const key = JSON.stringify([problem.path, problem.message]);
    return !seen.has(key) && seen.add(key);
  });
}

function duplicateIds(input: DocumentInput): Problem[] {
  const first = new Map<string, number>();
  return (input.models ?? []).flatMap((entry, index): Problem[] => {
    const id = typeof entry === "string" ? entry : entry.id;
    const folded = id.toLowerCase();
    const earlier = first.get(folded);
    if (earlier === undefined) first.set(folded, index);
    return earlier === undefined ? [] : [{ path: ["models", index], message: `${id} is already the model at index ${earlier}` }];
  });
}

function presetProblems(input: DocumentInput): Problem[] {
  return (input.models ?? []).flatMap((entry, index): Problem[] => {
    if (typeof entry === "string" || !entry.preset) return [];
    return Object.entries(entry.preset).flatMap(([key, value]): Problem[] => {
      const message = presetProblem(key, value as string | number | boolean);
      return message === null ? [] : [{ path: ["models", index, "preset", key], message }];
    });
  });
}

function portProblems(input: DocumentInput): Problem[] {
  return (input.rpc?.workers ?? []).flatMap((worker, index): Problem[] => {
    const port = Number(worker.slice(worker.lastIndexOf(":") + 1));
    return port >= 1 && port <= 65_535 ? [] : [{ path: ["rpc", "workers", index], message: `${port} is no port` }];
  });
}
