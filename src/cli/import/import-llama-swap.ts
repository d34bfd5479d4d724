// `import llama-swap FILE`: the models of its configuration.
import { dirname, resolve } from "node:path";
import { isWholeGguf } from "../../cache/gguf/metadata.ts";
import type { ImportedModel, Remark } from "../../import/imported.ts";
import { llamaSwapModels } from "../../import/llama-swap.ts";
import { parseSwapConfig } from "../../import/swap-config.ts";
import type { CommandLine } from "../../settings/settings.ts";
import { readDocumentFile } from "../document-file.ts";
import { addModels } from "./add-models.ts";

export async function importLlamaSwapCommand(line: CommandLine): Promise<number> {
  const { environment, presetAllow } = line.settings;
  const { name, bytes } = await readDocumentFile(line.operands[0] ?? "");
  const config = parseSwapConfig(name, bytes.toString("utf8"));
  // Of a command that was started there; on standard input, here.
  const folder = dirname(resolve(name));
  const { models, remarks } = llamaSwapModels(config, {
    resolve: (path) => resolve(folder, path),
    environment,
    presetAllow,
  });
  const found: ImportedModel[] = [];
  const missing: Remark[] = [];
  for (const each of models) {
    const { source } = each.model;
    if (source === undefined || (await isWholeGguf(source))) found.push(each);
    else
      missing.push({
        about: each.name,
        line: config.lineOf(["models", each.name, "cmd"]),
        message: `is not taken over: ${source} is not there, or no whole GGUF file`,
      });
  }
  return addModels(line, { models: found, remarks: [...remarks, ...missing] }, name);
}
