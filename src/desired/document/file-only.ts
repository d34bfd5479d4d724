// The fields that only gateway.yaml may set: they name files of this machine, so a license key is not enough. Pure.
import { GatewayError } from "../../core/errors.ts";
import { equalJson, isJsonObject } from "../../core/merge-patch.ts";
import type { DocumentTree } from "./document.ts";
import { formatPath } from "./parse.ts";

const fileOnly = ["chatTemplate", "lora", "mmproj", "draft"] as const;

/**
 * For a document that a call makes. A value that the model has already, in the document or in the file, is no news: a PUT may
 * repeat it, and a pull brings a model back as the file has it. Errors: `file_only`.
 */
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
