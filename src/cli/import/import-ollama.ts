// `import ollama [FOLDER]`: the models of Ollama's store.
import { access, constants, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { isAbsent } from "../../core/errors.ts";
import type { Imported, Remark } from "../../import/imported.ts";
import { ollamaModels } from "../../import/ollama.ts";
import type { CommandLine } from "../../settings/settings.ts";
import { addModels } from "./add-models.ts";
import { readOllamaStore } from "./ollama-store.ts";

export async function importOllamaCommand(line: CommandLine): Promise<number> {
  const { environment, cacheDir } = line.settings;
  const { folder, models, remarks } = await readOllamaStore(line.operands[0], environment);
  const imported: Imported = ollamaModels(models, {
    keepAlive: environment["OLLAMA_KEEP_ALIVE"],
    contextLength: environment["OLLAMA_CONTEXT_LENGTH"],
  });
  const [first] = models;
  const links = first ? [await linkRemark(first.weights, folder, cacheDir)] : [];
  return addModels(line, { ...imported, remarks: [...remarks, ...imported.remarks, ...links] }, null);
}

/** By which links the gateway brings the files in, if it runs as the user of this command. */
async function linkRemark(file: string, folder: string, cacheDir: string): Promise<Remark> {
  const { dev, uid } = await stat(file);
  const isOnSameDisk = dev === (await deviceOf(cacheDir));
  // Linux allows hard links to files of others only where they may be written to.
  const isAllowed =
    uid === process.getuid?.() ||
    (await access(file, constants.R_OK | constants.W_OK).then(
      () => true,
      () => false,
    ));
  if (isOnSameDisk && isAllowed)
    return {
      about: folder,
      message: "its files become hard links in the model cache: no copies, and they stay after `ollama rm`",
    };
  const why = isOnSameDisk ? "belongs to another user" : "is on another file system";
  return {
    about: folder,
    message: `its files become symlinks in the model cache, as the store ${why}: no copies, but \`ollama rm\` takes the model away here too`,
  };
}

/** Of the folder, or of the nearest one above it that is there. */
async function deviceOf(folder: string): Promise<number> {
  try {
    return (await stat(folder)).dev;
  } catch (error) {
    if (!isAbsent(error) || dirname(folder) === folder) throw error;
    return deviceOf(dirname(folder));
  }
}
