// The document as YAML, as a person could have written it. Pure.
import { stringify } from "yaml";
import type { DocumentInput } from "../../schemas/document.ts";

export function renderDocument(document: DocumentInput): string {
  return stringify(document, { lineWidth: 0, aliasDuplicateObjects: false });
}
