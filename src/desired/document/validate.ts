// Validates a desired document: every problem at once, with its path.
import type { ErrorObject } from "ajv";
import { autoPattern, modelSchema, rpcSchema, sizePattern, speechSchema } from "../../../schemas/document.ts";
import { presetKeyPattern, presetOptions } from "../../../schemas/preset-options.ts";
import { GatewayError } from "../../core/errors.ts";
import { idForm, parseModelId } from "../../core/ids.ts";
import { equalJson, isJsonObject } from "../../core/json.ts";
import { keepAliveMs } from "../../core/keep-alive.ts";
import { nearMatch } from "../../core/near-match.ts";
import { noneAllowed, type PresetAllow, presetKeyProblem, presetValueProblem } from "../../core/preset-keys.ts";
import { isPublicLiteral, workerProblem } from "../../core/worker-address.ts";
import { modelFileName } from "../../speech/transcription-models.ts";
import { isVoiceId } from "../../speech/voices.ts";
import { boundProblem, clip, mostListed } from "./bounds.ts";
import { type DocumentTree, toTree } from "./document.ts";
import { firstIndexes, nameProblems } from "./names.ts";
import { type Found, formatPath, listIn, type Problem } from "./problem.ts";
import { validate as matchesSchema } from "./schema-check.ts";
import { variantProblems } from "./variants.ts";

export type Validation =
  | { readonly ok: true; readonly tree: DocumentTree }
  | {
      readonly ok: false;
      readonly problems: readonly Problem[];
      /** Problems beyond those. */
      readonly more: number;
      /** It exceeds a bound, and was not validated. */
      readonly isTooLarge: boolean;
    };

/** Violations of the schema that are described; some of them may be the same. */
const mostRead = 100;

/** What a text that breaks a pattern should have been. */
const forms: ReadonlyMap<string, string> = new Map([
  [modelSchema.properties.id.pattern, idForm],
  [modelSchema.properties.revision.pattern, "a branch, tag or commit"],
  [autoPattern, "8192 or auto"],
  [speechSchema.properties.transcription.properties.model.pattern, "ggml-NAME.bin or NAME"],
  [speechSchema.properties.synthesis.properties.voice.pattern, "a voice's id, such as en_US-lessac-medium"],
  [sizePattern, "a number of bytes or a size such as 2GiB or 512MiB"],
  [modelSchema.properties.aliases.items.pattern, "a name of letters, digits and _ . / : + @ -"],
]);

const options = [...presetOptions.keys()];
const isPresetKey = new RegExp(presetKeyPattern);
const modelPattern = new RegExp(speechSchema.properties.transcription.properties.model.pattern, "u");
const voicePattern = new RegExp(speechSchema.properties.synthesis.properties.voice.pattern, "u");

export function validateDocument(value: unknown, presetAllow: PresetAllow = noneAllowed): Validation {
  const bound = boundProblem(value);
  if (bound) return { ok: false, problems: [bound], more: 0, isTooLarge: true };
  const fits = matchesSchema(value);
  const errors = fits ? [] : (matchesSchema.errors ?? []).filter(isForThisShape);
  // Also beside a broken key: all problems are reported at once.
  const problems: readonly Found[] = [
    ...errors.slice(0, mostRead).map(toProblem),
    ...modelProblems(listIn(value, "models"), presetAllow),
    ...workerProblems(value),
    ...speechProblems(value),
  ];
  if (fits && problems.length === 0) return { ok: true, tree: toTree(value) };
  // A rule of the schema and one of ours may have the same to report.
  const all = [
    ...new Map(problems.map((problem) => [JSON.stringify([problem.path, problem.message]), problem])).values(),
  ];
  const listed = all.slice(0, mostListed).map(withNearKey);
  return {
    ok: false,
    problems: listed,
    more: all.length - listed.length + Math.max(0, errors.length - mostRead),
    isTooLarge: false,
  };
}

/** What to write instead. */
function withNearKey({ known, ...problem }: Found): Problem {
  if (!known) return { ...problem, message: clip(problem.message) };
  const near = nearMatch(String(problem.path.at(-1)), known);
  // Of the options there are 200.
  const others = known.length > 20 ? "" : ` (known: ${known.join(", ")})`;
  return { ...problem, message: clip(problem.message) + (near === null ? others : ` (did you mean ${near}?)`) };
}

/** A model is a string or an object: of a failed `anyOf` only the branch that the value resembles is reported. */
function isForThisShape(error: ErrorObject): boolean {
  if (error.keyword === "anyOf" || error.keyword === "propertyNames") return false;
  const branch = /\/items\/anyOf\/([01])\/(type$)?/.exec(error.schemaPath);
  if (!branch) return true;
  // Its values have types of their own; this is the model's.
  if (branch[2] !== undefined) return branch[1] === "0" && !isJsonObject(error.data) && typeof error.data !== "string";
  return branch[1] === "1" || typeof error.data === "string";
}

function toProblem(error: ErrorObject): Found {
  const path = pathOf(error.instancePath);
  const parameters = error.params as Record<string, unknown>;
  const key = error.propertyName;
  switch (error.keyword) {
    case "additionalProperties":
      return {
        path: [...path, String(parameters["additionalProperty"])],
        message: "unknown key",
        atKey: true,
        known: Object.keys((error.parentSchema as { properties?: object }).properties ?? {}),
      };
    case "pattern": {
      // A key that breaks `propertyNames` is reported at its parent, with the key's name beside it.
      const noOption = "not the long form of a llama-server option, without dashes";
      if (key !== undefined) return { path: [...path, key], message: noOption, atKey: true, known: options };
      const pattern = String(parameters["pattern"]);
      // Its own check has the better message.
      if (pattern === rpcSchema.properties.workers.items.pattern)
        return { path, message: workerProblem(String(error.data)) ?? "not of the form HOST:PORT" };
      return { path, message: `${JSON.stringify(error.data)} is not of the form ${forms.get(pattern) ?? pattern}` };
    }
    case "const":
      return { path, message: `must be ${JSON.stringify(parameters["allowedValue"])}` };
    case "enum":
      return { path, message: `must be one of ${(parameters["allowedValues"] as unknown[]).join(", ")}` };
    case "required":
      return { path, message: `${String(parameters["missingProperty"])} is missing` };
    case "type": {
      const isModel = path[0] === "models" && path.length === 2;
      const types = [parameters["type"]].flat().join(" or ");
      return { path, message: `must be ${isModel ? "OWNER/NAME:TAG or an object with an id" : types}` };
    }
    default:
      return { path, message: error.message ?? error.keyword };
  }
}

/** From a JSON pointer; what is a number in it is an index, as no key of a document is one. */
export function pathOf(pointer: string): (string | number)[] {
  return pointer
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"))
    .map((part) => (/^\d+$/.test(part) ? Number(part) : part));
}

/** Rules for models beyond the schema, for values of any shape. */
function modelProblems(models: readonly unknown[], presetAllow: PresetAllow): Found[] {
  const ids = models.map((entry) => (isJsonObject(entry) ? entry["id"] : entry));
  const firstById = firstIndexes(ids, (id) => id.toLowerCase());
  const own = models.flatMap((entry, index): Found[] => {
    const id = ids[index];
    const presets = [...presetProblems(entry, index, presetAllow), ...keepAliveProblems(entry, index)];
    if (typeof id !== "string") return presets;
    const path = ["models", index];
    const earlier = firstById.get(id.toLowerCase());
    const repeated = earlier === index ? [] : [{ path, message: `${id} is already the model at index ${earlier}` }];
    // `..`, `--` and a blank at the end fit the schema's pattern, but are no name of a folder or a file.
    const malformed = parseModelId(id) === null ? [`${JSON.stringify(id)} is not of the form ${idForm}`] : [];
    const idPath = isJsonObject(entry) ? [...path, "id"] : path;
    return [...repeated, ...malformed.map((message) => ({ path: idPath, message })), ...presets];
  });
  return [...own, ...nameProblems(models, ids), ...variantProblems(models)];
}

function keepAliveProblems(entry: unknown, index: number): Found[] {
  const value = isJsonObject(entry) ? entry["keepAlive"] : undefined;
  if ((typeof value !== "string" && typeof value !== "number") || keepAliveMs(value) !== null) return [];
  return [
    { path: ["models", index, "keepAlive"], message: "must be seconds, a duration such as 5m, 0, or -1 for ever" },
  ];
}

function presetProblems(entry: unknown, index: number, presetAllow: PresetAllow): Found[] {
  if (!isJsonObject(entry) || !isJsonObject(entry["preset"])) return [];
  return Object.entries(entry["preset"]).flatMap(([key, value]): Found[] => {
    const path = ["models", index, "preset", key];
    // The schema's own check reports such a key.
    if (!isPresetKey.test(key)) return [];
    const problem = presetKeyProblem(key, presetAllow);
    // Of what no setting would allow the reason says what to do.
    const isMisspelt = problem !== null && presetKeyProblem(key, new Set([key])) === null;
    if (problem !== null) return [{ path, message: problem, atKey: true, ...(isMisspelt && { known: options }) }];
    if (typeof value !== "string" && typeof value !== "number" && typeof value !== "boolean") return [];
    const message = presetValueProblem(key, value);
    return message === null ? [] : [{ path, message }];
  });
}

function workerProblems(value: unknown): Problem[] {
  const rpc = isJsonObject(value) ? value["rpc"] : undefined;
  const allowsPublic = isJsonObject(rpc) && rpc["allowPublicWorkers"] === true;
  return listIn(rpc, "workers").flatMap((worker, index): Problem[] => {
    if (typeof worker !== "string") return [];
    const path = ["rpc", "workers", index];
    const message = workerProblem(worker);
    if (message !== null) return [{ path, message }];
    const isPublic = `${worker} is a public address, and the protocol has neither password nor encryption; allowPublicWorkers: true permits it`;
    return allowsPublic || !isPublicLiteral(worker) ? [] : [{ path, message: isPublic }];
  });
}

/** Both become names of files. */
function speechProblems(value: unknown): Problem[] {
  const speech = isJsonObject(value) && isJsonObject(value["speech"]) ? value["speech"] : {};
  const model = isJsonObject(speech["transcription"]) ? speech["transcription"]["model"] : undefined;
  const voice = isJsonObject(speech["synthesis"]) ? speech["synthesis"]["voice"] : undefined;
  const problems: Problem[] = [];
  if (typeof model === "string" && modelPattern.test(model) && modelFileName(model) === null)
    problems.push({
      path: ["speech", "transcription", "model"],
      message: `${JSON.stringify(model)} is no transcription model: ggml-NAME.bin`,
    });
  if (typeof voice === "string" && voicePattern.test(voice) && !isVoiceId(voice))
    problems.push({ path: ["speech", "synthesis", "voice"], message: `${JSON.stringify(voice)} is no voice's id` });
  return problems;
}

/** Fields that only gateway.yaml may set: they name files of this machine, so a license key is not enough. */
const fileOnly = ["chatTemplate", "lora", "mmproj", "draft"] as const;

/** A value that the model has already, in the document or in the file, may be repeated by a call. Errors: `file_only`. */
export function requireFromFile(tree: DocumentTree, sources: readonly DocumentTree[]): void {
  const { models } = tree;
  if (!isJsonObject(models)) return;
  for (const id of Object.keys(models)) {
    for (const field of fileOnly) {
      const value = fieldOf(tree, id, field);
      if (value === undefined || sources.some((source) => equalJson(fieldOf(source, id, field) ?? null, value)))
        continue;
      throw new GatewayError("file_only", `${formatPath(["models", id, field])} can only be set in gateway.yaml`);
    }
  }
}

function fieldOf({ models }: DocumentTree, id: string, field: string): DocumentTree[string] | undefined {
  const model = isJsonObject(models) && Object.hasOwn(models, id) ? models[id] : undefined;
  return isJsonObject(model) && Object.hasOwn(model, field) ? model[field] : undefined;
}
