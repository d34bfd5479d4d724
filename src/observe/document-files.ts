// Observes the files that the document names: the sources of models, and what goes to the engine beside a model. Changes nothing.
import { realpath, stat } from "node:fs/promises";
import { dirname, isAbsolute, relative, resolve, sep } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { resolveSource, sourceOf } from "../cache/download/import-source.ts";
import { isGguf } from "../cache/gguf/metadata.ts";
import { systemCode } from "../core/errors.ts";
import type { Desired } from "../desired/document/document.ts";
import { namedFiles } from "../plan/model-files.ts";
import type { DocumentFile, Observed } from "../plan/observed.ts";

/**
 * By the names that the document has for them: the files that models are imported from, and those that go to the engine. `before`:
 * the latter as the last look found them.
 */
export async function readDocumentFiles(
  configPath: string,
  { models }: Desired,
  before?: Observed["documentFiles"],
): Promise<Pick<Observed, "sources" | "documentFiles">> {
  const [sources, documentFiles] = await Promise.all([
    readEach(
      models.flatMap(({ source }) => source ?? []),
      (source) => sourceOf(resolveSource(configPath, source)),
    ),
    readEngineFiles(configPath, models, before),
  ]);
  return { sources, documentFiles };
}

/** An editor that saves, or a ConfigMap that is updated, usually takes a file away for less. */
const replacedMs = 120;

/**
 * Those that go to the engine. One that was there before is looked for once more before it counts as gone: in the middle of an
 * update a model was loaded without its template, and answered.
 */
export function readEngineFiles(
  configPath: string,
  models: Desired["models"],
  before: Observed["documentFiles"] = new Map(),
  whileReplaced: () => Promise<unknown> = () => delay(replacedMs),
): Promise<Observed["documentFiles"]> {
  const folder = dirname(configPath);
  return readEach(models.flatMap(namedFiles), async (name) => {
    let file = await readFile(folder, name);
    if (file === null && before.get(name)?.state === "fit") {
      await whileReplaced();
      file = await readFile(folder, name);
    }
    return file ?? unfit(name, "does not exist");
  });
}

async function readEach<Found>(
  names: readonly string[],
  read: (name: string) => Promise<Found>,
): Promise<ReadonlyMap<string, Found>> {
  return new Map(await Promise.all([...new Set(names)].map(async (name) => [name, await read(name)] as const)));
}

function unfit(name: string, why: string): DocumentFile {
  return { state: "unfit", why: `${name} ${why}` };
}

/** null: it does not exist. */
async function readFile(folder: string, name: string): Promise<DocumentFile | null> {
  try {
    const path = await realpath(resolve(folder, name));
    if (!isInside(await realpath(folder), path)) return unfit(name, "lies outside the document's folder");
    const found = await stat(path);
    if (!found.isFile()) return unfit(name, "is not a regular file");
    const identity = [found.size, Math.round(found.mtimeMs), found.ino].map((part) => part.toString(36)).join("-");
    return { state: "fit", path, identity, isGguf: await isGguf(path) };
  } catch (error) {
    const code = systemCode(error);
    return code === "ENOENT" ? null : unfit(name, `cannot be read (${code ?? String(error)})`);
  }
}

function isInside(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}
