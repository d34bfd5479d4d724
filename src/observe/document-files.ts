// Observes the files that the document names: the sources of models, and what goes to the engine beside a model. Changes nothing.
import { realpath, stat } from "node:fs/promises";
import { dirname, isAbsolute, relative, resolve, sep } from "node:path";
import { resolveSource, sourceOf } from "../cache/download/import-source.ts";
import { isGguf } from "../cache/gguf/metadata.ts";
import { systemCode } from "../core/errors.ts";
import type { Desired } from "../desired/document/document.ts";
import { namedFiles } from "../plan/model-files.ts";
import type { DocumentFile, Observed } from "../plan/observed.ts";

/** By the names that the document has for them: the files that models are imported from, and those that go to the engine. */
export async function readDocumentFiles(
  configPath: string,
  { models }: Desired,
): Promise<Pick<Observed, "sources" | "documentFiles">> {
  const [sources, documentFiles] = await Promise.all([
    readEach(
      models.flatMap(({ source }) => source ?? []),
      (source) => sourceOf(resolveSource(configPath, source)),
    ),
    readEngineFiles(configPath, models),
  ]);
  return { sources, documentFiles };
}

/** Those that go to the engine. */
export function readEngineFiles(configPath: string, models: Desired["models"]): Promise<Observed["documentFiles"]> {
  const folder = dirname(configPath);
  return readEach(models.flatMap(namedFiles), (name) => readFile(folder, name));
}

async function readEach<Found>(
  names: readonly string[],
  read: (name: string) => Promise<Found>,
): Promise<ReadonlyMap<string, Found>> {
  return new Map(await Promise.all([...new Set(names)].map(async (name) => [name, await read(name)] as const)));
}

async function readFile(folder: string, name: string): Promise<DocumentFile> {
  const unfit = (why: string): DocumentFile => ({ state: "unfit", why: `${name} ${why}` });
  try {
    const path = await realpath(resolve(folder, name));
    if (!isInside(await realpath(folder), path)) return unfit("lies outside the document's folder");
    const found = await stat(path);
    if (!found.isFile()) return unfit("is not a regular file");
    const identity = [found.size, Math.round(found.mtimeMs), found.ino].map((part) => part.toString(36)).join("-");
    return { state: "fit", path, identity, isGguf: await isGguf(path) };
  } catch (error) {
    const code = systemCode(error);
    return unfit(code === "ENOENT" ? "does not exist" : `cannot be read (${code ?? String(error)})`);
  }
}

function isInside(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}
