// Reads Ollama's model store: its manifests, and of their files what an import needs. Changes nothing.
import { access, constants, readFile, stat } from "node:fs/promises";
import { join, relative, resolve, sep } from "node:path";
import { isWholeGguf, readGgufDetails } from "../../cache/gguf/metadata.ts";
import { GatewayError, isAbsent, reasonOf } from "../../core/errors.ts";
import { isJsonObject, type JsonObject, parseJson } from "../../core/json.ts";
import type { Remark } from "../../import/imported.ts";
import { type OllamaPlace, ollamaName, type StoredModel } from "../../import/ollama.ts";
import { configProblem, parseManifest } from "../../import/ollama-manifest.ts";
import { type Environment, home } from "../../settings/shared.ts";
import { entriesBelow } from "../../state/folder.ts";

export interface OllamaStore {
  readonly folder: string;
  readonly models: readonly StoredModel[];
  readonly remarks: readonly Remark[];
}

/** Where Ollama has it; on Linux its installer makes a user of its own. Errors: `invalid_request` where there is none to read. */
export async function readOllamaStore(given: string | undefined, environment: Environment): Promise<OllamaStore> {
  const named = given ?? environment["OLLAMA_MODELS"];
  const folders = named
    ? [resolve(named), resolve(named, "models")]
    : [join(home(environment), ".ollama", "models"), "/usr/share/ollama/.ollama/models"];
  for (const folder of folders) {
    const places = await placesIn(folder);
    if (places === null) continue;
    const remarks: Remark[] = [];
    const models: StoredModel[] = [];
    for (const place of places) {
      const found = await readModel(folder, place);
      if (typeof found === "string")
        remarks.push({ about: ollamaName(place), message: `is not taken over: it ${found}` });
      else models.push(found);
    }
    return { folder, models, remarks };
  }
  const where = named ? folders[0] : folders.join(" or ");
  throw new GatewayError(
    "invalid_request",
    `there is no model store of Ollama in ${where}: name its folder, which has manifests and blobs`,
  );
}

/** Null where there is no store. */
async function placesIn(folder: string): Promise<OllamaPlace[] | null> {
  const manifests = join(folder, "manifests");
  try {
    const entries = await entriesBelow(manifests);
    return entries
      .filter((entry) => entry.isFile() && !entry.name.startsWith("."))
      .map((entry) => relative(manifests, join(entry.parentPath, entry.name)).split(sep))
      .flatMap(([host = "", namespace = "", model = "", tag, ...more]) =>
        tag === undefined || more.length > 0 ? [] : { host, namespace, model, tag },
      );
  } catch (error) {
    if (isAbsent(error)) return null;
    throw new GatewayError("invalid_request", `${manifests} cannot be read (${reasonOf(error)})`, { cause: error });
  }
}

/** Why it cannot be imported, in words that follow its name. */
async function readModel(folder: string, { host, namespace, model, tag }: OllamaPlace): Promise<StoredModel | string> {
  const path = join(folder, "manifests", host, namespace, model, tag);
  const blob = (digest: string): string => join(folder, "blobs", `sha256-${digest}`);
  const text = await textOf(path);
  if (text === null) return `has a manifest that cannot be read: ${path}`;
  const manifest = parseManifest(text);
  if (typeof manifest === "string") return manifest;
  const config = await jsonOf(blob(manifest.config));
  const problem = config && configProblem(config);
  if (problem) return problem;
  const paths = { weights: blob(manifest.weights), projector: manifest.projector && blob(manifest.projector) };
  const adapters = manifest.adapters.map(blob);
  for (const file of [paths.weights, paths.projector ?? [], adapters].flat()) {
    const fault = await faultOf(file);
    if (fault !== null) return fault;
  }
  return {
    place: { host, namespace, model, tag },
    // It says how the model is named; without it the tag does.
    config: config ?? {},
    params: (manifest.params && (await jsonOf(blob(manifest.params)))) || {},
    ...paths,
    adapters,
    others: manifest.others,
    hasTemplate: (await readGgufDetails([paths.weights]))?.template !== undefined,
  };
}

async function faultOf(path: string): Promise<string | null> {
  try {
    await stat(path);
    await access(path, constants.R_OK);
  } catch (error) {
    return isAbsent(error) ? `lacks its file ${path}` : `has a file that cannot be read: ${path} (${reasonOf(error)})`;
  }
  return (await isWholeGguf(path)) ? null : `has a file that is no whole GGUF file: ${path}`;
}

async function textOf(path: string): Promise<string | null> {
  return readFile(path, "utf8").catch(() => null);
}

async function jsonOf(path: string): Promise<JsonObject | null> {
  const value = parseJson((await textOf(path)) ?? "");
  return isJsonObject(value) ? value : null;
}
