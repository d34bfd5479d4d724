// What of a valid document only this machine shows: whether its files are there, and whether the engine has its options.
import { dirname, join } from "node:path";
import { requireShards, resolveSource } from "../cache/download/import-source.ts";
import { GatewayError, toGatewayError } from "../core/errors.ts";
import { nearMatch } from "../core/near-match.ts";
import type { Desired, DesiredModel } from "../desired/document/document.ts";
import type { Problem } from "../desired/document/problem.ts";
import { createEngineSource } from "../engines/llama/engine-source.ts";
import { readDocumentFiles } from "../observe/document-files.ts";
import { whyUnfit } from "../plan/model-files.ts";
import type { DocumentFile } from "../plan/observed.ts";
import type { Settings } from "../settings/settings.ts";

/** An engine that is installed here, and the options that it takes. */
export interface EngineHere {
  readonly path: string;
  readonly options: ReadonlySet<string>;
}

/** Null: none is installed. Errors: `engine_missing` where the setting names none. */
export async function findEngine(settings: Settings): Promise<EngineHere | null> {
  const { llamaServer, stateDir, environment, command } = settings;
  const engine = createEngineSource({
    explicit: llamaServer,
    enginesDir: join(stateDir, "engines"),
    installCommand: command("engine", "install", "llama"),
    environment,
    install: false,
    onProgress: () => undefined,
    onChange: () => undefined,
  });
  await engine.prepare(new AbortController().signal);
  const path = engine.path();
  const problem = engine.problem();
  // One that is named is to be used; without a name there may be none.
  if (llamaServer !== undefined && problem !== null) throw new GatewayError("engine_missing", problem.message);
  const options = engine.state().knownOptions;
  return path === null || options === null ? null : { path, options };
}

/** `configPath`: the document's files are named relative to its folder. */
export async function problemsHere(
  configPath: string,
  document: Desired,
  engine: EngineHere | null,
): Promise<readonly Problem[]> {
  const { documentFiles } = await readDocumentFiles(configPath, document);
  const found = document.models.map(async (model, index) =>
    [
      ...(await sourceProblems(configPath, model)),
      ...fileProblems(dirname(configPath), model, documentFiles),
      ...optionProblems(model, engine),
      ...draftProblems(model, document),
    ].map((problem) => ({ ...problem, path: ["models", index, ...problem.path] })),
  );
  return (await Promise.all(found)).flat();
}

async function sourceProblems(configPath: string, { source }: DesiredModel): Promise<Problem[]> {
  if (source === undefined) return [];
  try {
    await requireShards(resolveSource(configPath, source));
    return [];
  } catch (error) {
    const { message } = toGatewayError(error);
    return [{ path: ["source"], message: `${message}: name a .gguf file, relative to the document's folder` }];
  }
}

function fileProblems(
  folder: string,
  { chatTemplate, lora = [], mmproj }: DesiredModel,
  files: ReadonlyMap<string, DocumentFile>,
): Problem[] {
  const named: readonly (readonly [path: Problem["path"], name: string | undefined])[] = [
    [["chatTemplate"], chatTemplate],
    ...lora.map(({ source }, index) => [["lora", index, "source"], source] as const),
    [["mmproj"], mmproj],
  ];
  return named.flatMap(([path, name]) => {
    const file = name === undefined ? undefined : files.get(name);
    const why = file && whyUnfit(String(path[0]), name ?? "", file);
    return why ? [{ path, message: `${why}: name a file in ${folder} or below` }] : [];
  });
}

function optionProblems({ preset = {} }: DesiredModel, engine: EngineHere | null): Problem[] {
  if (!engine) return [];
  return Object.keys(preset).flatMap((key) => {
    if (engine.options.has(key)) return [];
    const near = nearMatch(key, engine.options);
    const hint = near === null ? "remove it, or install an engine that has it" : `did you mean ${near}?`;
    return [
      { path: ["preset", key], message: `the engine ${engine.path} has no option ${key} (${hint})`, atKey: true },
    ];
  });
}

function draftProblems({ id, draft }: DesiredModel, { models }: Desired): Problem[] {
  const isOther = (other: string): boolean => other !== id && other.toLowerCase() === draft?.toLowerCase();
  if (draft === undefined || models.some((model) => isOther(model.id))) return [];
  return [{ path: ["draft"], message: `${draft} is not another model of the document: add it to models` }];
}
